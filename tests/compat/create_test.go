package compat_test

import (
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var creates = []operation{
	{"create", func(p *play) {
		eve := person{Name: "eve", Home: address{City: "Rome"}, Tags: []string{"x"}, Secret: []byte("s")}
		p.ran(p.db.Create(&eve), eve)
	}},
	{"create with zero values and defaults", func(p *play) {
		made := []company{{Name: "a"}, {Name: "b", Owner: "me"}}
		p.ran(p.db.Create(&made), made)
	}},
	{"create with a key", func(p *play) {
		eve := person{ID: 77, Name: "eve", CreatedAt: now().Add(-time.Hour)}
		p.ran(p.db.Create(&eve), eve)
	}},
	{"create a slice", func(p *play) {
		made := []person{{Name: "eve"}, {Name: "fay", Age: 7}}
		p.ran(p.db.Create(&made), made)
	}},
	{"create a slice of pointers", func(p *play) {
		made := []*person{{Name: "eve"}, {Name: "fay"}}
		p.ran(p.db.Create(made), made)
	}},
	{"create an empty slice", func(p *play) { p.ran(p.db.Create(&[]person{})) }},
	{"create in batches", func(p *play) {
		made := []language{{"a", "A"}, {"b", "B"}, {"c", "C"}, {"d", "D"}, {"e", "E"}}
		p.ran(p.db.CreateInBatches(&made, 2), made)
	}},
	{"create in batches that fail half way", func(p *play) {
		p.ran(p.db.CreateInBatches(&[]language{{"a", "A"}, {"b", "B"}, {"fr", "again"}}, 2))
	}},
	{"create in batches of the session", func(p *play) {
		p.ran(p.db.Session(&gorm.Session{CreateBatchSize: 2}).Create(&[]language{{"a", "A"}, {"b", "B"}, {"c", "C"}}))
	}},
	{"create from a map", func(p *play) {
		p.ran(p.db.Model(&person{}).Create(map[string]any{"Name": "eve", "age": 3}))
	}},
	{"create from maps", func(p *play) {
		made := []map[string]any{{"code": "a", "name": "A"}, {"code": "b", "name": "B"}}
		p.ran(p.db.Model(&language{}).Create(&made))
	}},
	{"create from a map with an expression", func(p *play) {
		p.ran(p.db.Model(&person{}).Create(map[string]any{"name": clause.Expr{SQL: "upper(?)", Vars: []any{"eve"}}}))
	}},
	{"create with select", func(p *play) {
		eve := person{Name: "eve", Age: 9, Email: pointer("e")}
		p.ran(p.db.Select("Name", "Email").Create(&eve), eve)
	}},
	{"create with omit", func(p *play) {
		eve := person{Name: "eve", Age: 9, Email: pointer("e"), Company: &company{Name: "new"}}
		p.ran(p.db.Omit("Age", "Company").Create(&eve), eve)
	}},
	{"create with returning", func(p *play) {
		eve := person{Name: "eve"}
		p.ran(p.db.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "age"}}}).Create(&eve), eve)
	}},
	{"create that breaks a unique key", func(p *play) {
		p.ran(p.db.Create(&person{Name: "eve", Email: pointer("ada@example.org"), Company: &company{Name: "lost"}}))
	}},
	{"create with associations of all kinds", func(p *play) {
		eve := person{
			Name: "eve", Company: &company{Name: "new", Remarks: []remark{{Body: "of a company"}}}, Profile: &profile{Bio: "b"},
			Pets: []pet{{Name: "owl", Toys: []toy{{Name: "bell"}}}}, Languages: []language{{"en", "English"}, {"la", "Latin"}},
			Remarks: []remark{{Body: "x"}, {Body: "y"}}, Team: []person{{Name: "low", Profile: &profile{Bio: "deep"}}},
		}
		p.ran(p.db.Create(&eve), eve)
	}},
	{"create with full save of associations", func(p *play) {
		eve := person{Name: "eve", Company: &company{ID: 1, Name: "renamed"}, Languages: []language{{"en", "Anglais"}}}
		p.ran(p.db.Session(&gorm.Session{FullSaveAssociations: true}).Create(&eve), eve)
	}},
	{"upsert that does nothing", func(p *play) {
		made := []language{{"en", "Anglais"}, {"la", "Latin"}}
		p.ran(p.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&made), made)
	}},
	{"upsert of all columns", func(p *play) {
		made := []language{{"en", "Anglais"}, {"la", "Latin"}}
		p.ran(p.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&made), made)
	}},
	{"upsert of columns by a unique key", func(p *play) {
		ada := person{Name: "lovelace", Email: pointer("ada@example.org"), Age: 1}
		p.ran(p.db.Clauses(clause.OnConflict{
			Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"name"}),
			Where: clause.Where{Exprs: []clause.Expression{gorm.Expr("people.age > ?", 10)}},
		}).Create(&ada), ada)
	}},
	{"upsert with expressions", func(p *play) {
		p.ran(p.db.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "shop"}, {Name: "item"}},
			DoUpdates: clause.Assignments(map[string]any{"amount": gorm.Expr("prices.amount + excluded.amount")}),
		}).Create(&[]price{{"a", "milk", 100}, {"c", "milk", 1}}))
	}},
	{"create with a composite key", func(p *play) { p.ran(p.db.Create(&price{"z", "salt", 1})) }},
	{"create in a table named by hand", func(p *play) {
		p.ran(p.db.Table("languages").Create(map[string]any{"code": "la", "name": "Latin"}))
	}},
	{"first or create finds", func(p *play) {
		var ada person
		p.ran(p.db.Where(person{Name: "ada"}).Attrs(person{Age: 1}).FirstOrCreate(&ada), ada)
	}},
	{"first or create creates", func(p *play) {
		var eve person
		p.ran(p.db.Where(person{Name: "eve"}).Attrs(person{Age: 1}).FirstOrCreate(&eve), eve)
	}},
	{"first or create assigns", func(p *play) {
		var ada person
		p.ran(p.db.Where(person{Name: "ada"}).Assign(person{Age: 99}).FirstOrCreate(&ada), ada)
	}},
	{"first or init", func(p *play) {
		var eve person
		p.ran(p.db.Where(person{Name: "eve"}).Attrs(person{Age: 1}).FirstOrInit(&eve), eve)
	}},
	{"save what is new", func(p *play) {
		eve := person{Name: "eve", Profile: &profile{Bio: "b"}}
		p.ran(p.db.Save(&eve), eve)
	}},
	{"save what is not there", func(p *play) {
		eve := person{ID: 99, Name: "eve"}
		p.ran(p.db.Save(&eve), eve)
	}},
	{"save a slice", func(p *play) {
		all := []person{{ID: 1, Name: "ada2"}, {Name: "eve"}}
		p.ran(p.db.Save(&all), all)
	}},
	{"insert from a query", func(p *play) {
		p.ran(p.db.Exec("INSERT INTO languages (code, name) SELECT 'x' || id, ? FROM people WHERE id IN ?", "of", []int64{1, 2}))
	}},
}
