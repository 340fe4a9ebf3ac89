package compat_test

import (
	"cmp"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var writes = []operation{
	{"update a column", func(p *play) {
		x := person{ID: 1, Name: "ada"}
		p.ran(p.db.Model(&x).Update("name", "lovelace"), x)
	}},
	{"update with a struct", func(p *play) {
		x := person{ID: 1}
		p.ran(p.db.Model(&x).Updates(person{Name: "l", Age: 0, Home: address{City: "Paris"}, Tags: []string{"t"}}), x)
	}},
	{"update with a map", func(p *play) {
		x := person{ID: 1}
		p.ran(p.db.Model(&x).Updates(map[string]any{"name": "l", "Age": 0, "active": false, "home_city": nil}), x)
	}},
	{"update with an expression", func(p *play) {
		x := person{ID: 1, Age: 5}
		p.ran(p.db.Model(&x).Update("age", gorm.Expr("age * ? + ?", 2, 1)), x)
	}},
	{"update with a subquery", func(p *play) {
		p.ran(p.db.Model(&person{}).Where("id = 2").Update("name", p.db.Model(&company{}).Select("name").Where("id = 1")))
	}},
	{"update of many", func(p *play) { p.ran(p.db.Model(&person{}).Where("age > ?", 20).Update("active", true)) }},
	{"update of nothing", func(p *play) { p.ran(p.db.Model(&person{}).Where("id = ?", 999).Update("active", true)) }},
	{"update without a condition", func(p *play) { p.ran(p.db.Model(&person{}).Update("active", true)) }},
	{"update of all", func(p *play) {
		p.ran(p.db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&person{}).Update("active", true))
	}},
	{"update with select and omit", func(p *play) {
		x := person{ID: 1, Name: "l", Age: 3, Active: true}
		p.ran(p.db.Model(&x).Select("Name", "Age").Omit("Age").Updates(&x), x)
	}},
	{"update of zero values by select", func(p *play) {
		p.ran(p.db.Model(&person{ID: 1}).Select("name", "age", "active").Updates(person{}))
	}},
	{"update without hooks", func(p *play) {
		x := diary{ID: 1}
		p.ran(p.db.Model(&x).UpdateColumn("text", "c"), x, x.heard)
		p.ran(p.db.Model(&x).UpdateColumns(diary{Text: "d", Hooked: "by hand"}), x, x.heard)
	}},
	{"update with returning", func(p *play) {
		var x []person
		update := p.db.Model(&x).Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "age"}}}).
			Where("id IN ?", []int{1, 2}).Update("age", gorm.Expr("age + 1"))
		slices.SortFunc(x, func(a, b person) int { return cmp.Compare(a.ID, b.ID) }) // rows come back as they lie on their pages
		p.ran(update, x)
	}},
	{"update of a slice", func(p *play) {
		x := []person{{ID: 1}, {ID: 2}}
		p.ran(p.db.Model(&x).Update("age", 33), x)
	}},
	{"update by a composite key", func(p *play) {
		x := price{Shop: "a", Item: "milk"}
		p.ran(p.db.Model(&x).Update("amount", 9), x)
	}},
	{"update of a table", func(p *play) {
		p.ran(p.db.Table("people").Where("id = ?", 1).Updates(map[string]any{"name": "t"}))
	}},
	{"update that breaks a unique key", func(p *play) {
		x := person{ID: 2}
		p.ran(p.db.Model(&x).Update("email", "ada@example.org"), x)
	}},
	{"update with a clause of its own", func(p *play) {
		p.ran(p.db.Model(&person{}).Clauses(clause.From{Joins: nil}, clause.Where{Exprs: []clause.Expression{clause.Eq{Column: "id", Value: 1}}}).
			Update("name", "w"))
	}},
	{"save", func(p *play) {
		var x person
		p.ran(p.db.Preload("Pets", inOrder).First(&x, 1))
		x.Name, x.Pets = "saved", append(x.Pets, pet{Name: "more"})
		p.ran(p.db.Save(&x), x)
	}},
	{"save with full save of associations", func(p *play) {
		var x person
		p.ran(p.db.Preload("Pets", inOrder).Preload("Company").First(&x, 1))
		x.Pets, x.Company.Name = append(x.Pets, pet{Name: "more"}), "engine2"
		p.ran(p.db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&x), x)
	}},
	{"save with select", func(p *play) {
		x := person{ID: 1, Name: "only"}
		p.ran(p.db.Select("Name").Save(&x), x)
	}},
	{"save with omit of associations", func(p *play) {
		x := person{ID: 1, Name: "only", Company: &company{Name: "never"}}
		p.ran(p.db.Omit(clause.Associations).Save(&x), x)
	}},
	{"delete", func(p *play) { x := person{ID: 2}; p.ran(p.db.Delete(&x), x) }},
	{"delete by key", func(p *play) { p.ran(p.db.Delete(&toy{}, 1)) }},
	{"delete by keys", func(p *play) { p.ran(p.db.Delete(&toy{}, []int64{1, 2, 3})) }},
	{"delete by condition", func(p *play) { p.ran(p.db.Where("age < ?", 35).Delete(&person{})) }},
	{"delete a slice", func(p *play) { p.ran(p.db.Delete(&[]price{{"a", "milk", 0}, {"b", "milk", 0}})) }},
	{"delete without a condition", func(p *play) { p.ran(p.db.Delete(&toy{})) }},
	{"delete for good", func(p *play) { p.ran(p.db.Unscoped().Delete(&person{ID: 3})) }},
	{"delete with returning", func(p *play) {
		var x []toy
		deleted := p.db.Clauses(clause.Returning{}).Where("id > 0").Delete(&x)
		slices.SortFunc(x, func(a, b toy) int { return cmp.Compare(a.ID, b.ID) })
		p.ran(deleted, x)
	}},
	{"delete with associations", func(p *play) { p.ran(p.db.Select("Languages").Delete(&person{ID: 1})) }},
	{"delete that a foreign key refuses", func(p *play) { p.ran(p.db.Delete(&company{ID: 1})) }},
	{"update what is soft deleted", func(p *play) {
		p.ran(p.db.Model(&person{ID: 5}).Update("name", "no"))
		p.ran(p.db.Unscoped().Model(&person{ID: 5}).Updates(map[string]any{"name": "back", "deleted_at": nil}))
	}},
	{"exec", func(p *play) {
		p.ran(p.db.Exec("UPDATE people SET age = age + @n WHERE id IN @ids", map[string]any{"n": 1, "ids": []int{1, 2}}))
	}},
	{"exec that fails", func(p *play) { p.ran(p.db.Exec("UPDATE nowhere SET x = 1")) }},
	{"hooks", func(p *play) {
		x := diary{Text: "new", Pages: []page{{Text: "a"}}}
		p.ran(p.db.Create(&x), x, x.heard)
		x.heard, x.Text = nil, "changed"
		p.ran(p.db.Save(&x), x, x.heard)
		x.heard = nil
		p.ran(p.db.Model(&x).Update("text", "again"), x, x.heard)
		x.heard = nil
		p.ran(p.db.Delete(&x), x, x.heard)
	}},
	{"hooks skipped", func(p *play) {
		x := diary{Text: "new"}
		p.ran(p.db.Session(&gorm.Session{SkipHooks: true}).Create(&x), x, x.heard)
	}},
	{"a hook before refuses", func(p *play) {
		x := diary{Text: "refused before create"}
		p.ran(p.db.Create(&x), x, x.heard)
	}},
	{"a hook after refuses", func(p *play) {
		x := diary{Text: "refused after create"}
		p.ran(p.db.Create(&x), x, x.heard)
		y := diary{ID: 1, Text: "refused after update"}
		p.ran(p.db.Save(&y), y, y.heard)
		z := diary{ID: 1, Text: "refused after delete"}
		p.ran(p.db.Delete(&z), z, z.heard)
	}},
	{"hooks of a batch", func(p *play) {
		x := []diary{{Text: "a"}, {Text: "b"}, {Text: "refused before save"}}
		p.ran(p.db.Create(&x), x)
		for _, d := range x {
			p.tell(d.heard)
		}
	}},
}

var associations = []operation{
	{"find an association", func(p *play) {
		var x []pet
		p.tell(p.db.Model(&person{ID: 1}).Order("pets.id").Association("Pets").Find(&x), x)
	}},
	{"count an association", func(p *play) {
		a := p.db.Model(&[]person{{ID: 1}, {ID: 3}}).Association("Languages")
		p.tell(a.Count(), a.Error)
	}},
	{"has many", func(p *play) {
		x := person{ID: 1}
		p.tell(p.db.Model(&x).Association("Pets").Append(&pet{Name: "new"}, &pet{ID: 3}), x)
		p.tell(p.db.Model(&x).Association("Pets").Replace(&pet{Name: "only", Toys: []toy{{Name: "t"}}}), x)
		p.tell(p.db.Model(&x).Association("Pets").Clear(), x)
	}},
	{"has many unscoped", func(p *play) {
		x := person{ID: 1}
		p.tell(p.db.Model(&x).Association("Pets").Unscoped().Replace(&pet{ID: 2, Name: "dog"}), x)
	}},
	{"has one", func(p *play) {
		x := person{ID: 2}
		p.tell(p.db.Model(&x).Association("Profile").Append(&profile{Bio: "mine"}), x)
		p.tell(p.db.Model(&x).Association("Profile").Replace(&profile{Bio: "other"}), x)
	}},
	{"belongs to", func(p *play) {
		x := person{ID: 3}
		p.tell(p.db.Model(&x).Association("Company").Append(&company{Name: "new"}), x)
		p.tell(p.db.Model(&x).Association("Company").Clear(), x)
	}},
	{"many to many", func(p *play) {
		x := person{ID: 1}
		p.tell(p.db.Model(&x).Association("Languages").Append(&language{"la", "Latin"}), x)
		p.tell(p.db.Model(&x).Association("Languages").Delete(&language{Code: "en"}), x)
		p.tell(p.db.Model(&x).Association("Languages").Replace(&language{"de", "German"}, &language{"fr", "French"}), x)
		p.tell(p.db.Model(&x).Association("Languages").Count(), p.db.Model(&x).Association("Languages").Clear(), x)
	}},
	{"many to many of many", func(p *play) {
		x := []person{{ID: 1}, {ID: 2}}
		p.tell(p.db.Model(&x).Association("Languages").Append(&language{"la", "Latin"}, &[]language{{"de", "German"}, {"en", "English"}}), x)
	}},
	{"polymorphic", func(p *play) {
		x := company{ID: 1}
		p.tell(p.db.Model(&x).Association("Remarks").Append(&remark{Body: "b"}), x)
		p.tell(p.db.Model(&x).Association("Remarks").Replace(&remark{Body: "c"}), x)
	}},
	{"association without a key", func(p *play) { p.tell(p.db.Model(&person{}).Association("Pets").Append(&pet{Name: "x"})) }},
	{"association that is none", func(p *play) { p.tell(p.db.Model(&person{ID: 1}).Association("Nothing").Find(&[]pet{})) }},
	{"association in a transaction that is rolled back", func(p *play) {
		x := person{ID: 1}
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			p.tell(tx.Model(&x).Association("Pets").Append(&pet{Name: "new"}))
			return errRefused
		}), x)
	}},
	{"children of a model with hooks", func(p *play) {
		x := diary{ID: 1}
		p.tell(p.db.Model(&x).Association("Pages").Append(&page{Text: "new"}), x, x.heard)
	}},
}
