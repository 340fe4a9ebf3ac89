package compat_test

import (
	"database/sql"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/hints"
)

var reads = []operation{
	{"first", func(p *play) { var x person; p.ran(p.db.First(&x), x) }},
	{"first by key", func(p *play) { var x person; p.ran(p.db.First(&x, 2), x) }},
	{"first by the key of the struct", func(p *play) { x := person{ID: 3}; p.ran(p.db.First(&x), x) }},
	{"first that is not there", func(p *play) { var x person; p.ran(p.db.First(&x, 999), x) }},
	{"first with a composite key", func(p *play) { var x price; p.ran(p.db.Order("item").First(&x), x) }}, // GORM orders by one part of it
	{"take", func(p *play) { var x person; p.ran(p.db.Order("id").Take(&x), x) }},
	{"last", func(p *play) { var x person; p.ran(p.db.Last(&x), x) }},
	{"first into a map", func(p *play) {
		x := map[string]any{}
		p.ran(p.db.Model(&person{}).Select("id", "name", "age", "created_at").First(&x), x)
	}},
	{"find", func(p *play) { var x []person; p.ran(p.db.Order("id").Find(&x), x) }},
	{"find pointers", func(p *play) { var x []*person; p.ran(p.db.Order("id").Find(&x), x) }},
	{"find into maps", func(p *play) {
		var x []map[string]any
		p.ran(p.db.Table("people").Select("id", "name", "score", "secret").Order("id").Find(&x), x)
	}},
	{"find nothing", func(p *play) { var x []person; p.ran(p.db.Find(&x, "name = ?", "nobody"), x) }},
	{"find by keys", func(p *play) { var x []person; p.ran(p.db.Order("id").Find(&x, []int64{1, 3}), x) }},
	{"find unscoped", func(p *play) { var x []person; p.ran(p.db.Unscoped().Order("id").Find(&x), x) }},
	{"find into an array", func(p *play) { var x [2]person; p.ran(p.db.Order("id").Find(&x), x) }},
	{"find into a smaller struct", func(p *play) {
		var x []struct {
			ID   int64
			Name string
		}
		p.ran(p.db.Model(&person{}).Order("id").Find(&x), x)
	}},
	{"conditions", func(p *play) {
		var x []person
		p.ran(p.db.Where("age BETWEEN ? AND ?", 20, 36).Where(map[string]any{"active": []bool{true, false}}).
			Where(person{Active: false}).Not("name = ?", "zed").Or("name LIKE ?", "d%").Order("age desc, id").Find(&x), x)
	}},
	{"named arguments", func(p *play) {
		var x []person
		p.ran(p.db.Where("name = @name OR age = @age", sql.Named("name", "bob"), sql.Named("age", 30)).Order("id").Find(&x), x)
	}},
	{"clauses by hand", func(p *play) {
		var x []person
		p.ran(p.db.Clauses(
			clause.Where{Exprs: []clause.Expression{clause.Gte{Column: "age", Value: 30}, clause.IN{Column: "id", Values: []any{1, 3, 4}}}},
			clause.OrderBy{Columns: []clause.OrderByColumn{{Column: clause.Column{Name: "age"}, Desc: true}}},
			clause.Limit{Limit: pointer(2)},
		).Find(&x), x)
	}},
	{"hints and comments", func(p *play) {
		var x []person
		p.ran(p.db.Clauses(hints.Comment("select", "from the test"), hints.CommentBefore("where", "here")).
			Where("id > 0").Order("id").Find(&x), len(x))
	}},
	{"select, limit, offset", func(p *play) {
		var x []person
		p.ran(p.db.Select("id", "upper(name) AS name").Order("id").Limit(2).Offset(1).Find(&x), x)
	}},
	{"distinct", func(p *play) { var x []price; p.ran(p.db.Distinct("item").Order("item").Find(&x), x) }},
	{"group and having", func(p *play) {
		var x []struct {
			Item  string
			Total int
		}
		p.ran(p.db.Model(&price{}).Select("item, sum(amount) AS total").Group("item").Having("sum(amount) > ?", 1).
			Order("item").Scan(&x), x)
	}},
	{"joins of an association", func(p *play) {
		var x []person
		p.ran(p.db.Joins("Company").Joins("Profile").Order("people.id").Find(&x), x)
	}},
	{"inner joins of an association with a condition", func(p *play) {
		var x []person
		p.ran(p.db.InnerJoins("Company", p.db.Where(&company{Name: "engine"})).Order("people.id").Find(&x), x)
	}},
	{"joins by hand", func(p *play) {
		var x []struct{ Name, Bio string }
		p.ran(p.db.Model(&person{}).Select("people.name, profiles.bio").
			Joins("LEFT JOIN profiles ON profiles.person_id = people.id AND profiles.bio <> ?", "none").Order("people.id").Scan(&x), x)
	}},
	{"preload", func(p *play) {
		var x []person
		p.ran(p.db.Preload("Pets.Toys").Preload("Languages").Preload("Remarks").Preload("Company").Order("id").Find(&x), x)
	}},
	{"preload with conditions", func(p *play) {
		var x []person
		p.ran(p.db.Preload("Pets", "name <> ?", "dog").Preload("Team", func(db *gorm.DB) *gorm.DB { return db.Order("name DESC") }).
			Order("id").Find(&x), x)
	}},
	{"preload all", func(p *play) { var x person; p.ran(p.db.Preload(clause.Associations).First(&x, 1), x) }},
	{"preload of a joined association", func(p *play) {
		var x []person
		p.ran(p.db.Joins("Manager").Preload("Manager.Pets").Order("people.id").Find(&x), x)
	}},
	{"count", func(p *play) { var n int64; p.ran(p.db.Model(&person{}).Where("age > ?", 19).Count(&n), n) }},
	{"count distinct", func(p *play) { var n int64; p.ran(p.db.Model(&price{}).Distinct("item").Count(&n), n) }},
	{"count of groups", func(p *play) { var n int64; p.ran(p.db.Model(&price{}).Group("item").Count(&n), n) }},
	{"pluck", func(p *play) { var x []string; p.ran(p.db.Model(&person{}).Order("id").Pluck("name", &x), x) }},
	{"pluck times", func(p *play) { var x []time.Time; p.ran(p.db.Model(&person{}).Order("id").Pluck("created_at", &x), x) }},
	{"scan one value", func(p *play) { var x int; p.ran(p.db.Model(&person{}).Select("max(age)").Scan(&x), x) }},
	{"raw", func(p *play) {
		var x []person
		p.ran(p.db.Raw("SELECT *, name || '!' AS \"full\" FROM people WHERE age > ? ORDER BY id", 19).Scan(&x), x)
	}},
	{"raw without rows", func(p *play) { var x person; p.ran(p.db.Raw("SELECT * FROM people WHERE false").Scan(&x), x) }},
	{"raw first", func(p *play) { var x person; p.ran(p.db.Raw("SELECT * FROM people ORDER BY id").First(&x), x) }},
	{"raw that is no SQL", func(p *play) { var x person; p.ran(p.db.Raw("SELEKT").Scan(&x)) }},
	{"row", func(p *play) {
		var name string
		var age sql.NullInt64
		p.tell(p.db.Model(&person{}).Select("name, age").Where("id = ?", 1).Row().Scan(&name, &age), name, age)
	}},
	{"row that is not there", func(p *play) { var x string; p.tell(p.db.Raw("SELECT name FROM people WHERE false").Row().Scan(&x)) }},
	{"row with an error", func(p *play) { p.tell(p.db.Raw("SELECT 1/0").Row().Scan(new(int))) }},
	{"rows", func(p *play) {
		rows, err := p.db.Model(&person{}).Select("id", "name", "score", "secret", "created_at").Order("id").Rows()
		p.rows(rows, err)
	}},
	{"rows with an error", func(p *play) {
		rows, err := p.db.Raw("SELECT nothing FROM nowhere").Rows()
		p.rows(rows, err)
	}},
	{"scan rows", func(p *play) {
		rows, err := p.db.Model(&person{}).Order("id").Rows()
		if err != nil {
			p.tell(err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var x person
			p.tell(p.db.ScanRows(rows, &x), x)
		}
		p.tell(rows.Err())
	}},
	{"subquery in a condition", func(p *play) {
		var x []person
		p.ran(p.db.Where("age > (?)", p.db.Model(&person{}).Select("avg(age)")).Order("id").Find(&x), x)
	}},
	{"subquery as a table", func(p *play) {
		var x []struct{ Name string }
		p.ran(p.db.Table("(?) AS p, (?) AS q", p.db.Model(&person{}).Select("name"), p.db.Model(&language{}).Select("code")).
			Where("q.code = ?", "en").Order("p.name").Scan(&x), x)
	}},
	{"subquery of groups of conditions", func(p *play) {
		var x []person
		p.ran(p.db.Where(p.db.Where("age > ?", 25).Where(p.db.Where("active").Or("name = ?", "cid"))).Order("id").Find(&x), x)
	}},
	{"scopes", func(p *play) {
		older := func(n int) func(*gorm.DB) *gorm.DB {
			return func(db *gorm.DB) *gorm.DB { return db.Where("age > ?", n) }
		}
		var x []person
		p.ran(p.db.Scopes(older(19), older(29)).Order("id").Find(&x), x)
	}},
	{"find in batches", func(p *play) {
		var x []person
		p.ran(p.db.Order("id").FindInBatches(&x, 2, func(tx *gorm.DB, batch int) error {
			p.tell(batch, tx.RowsAffected, x)
			return tx.Model(&x[0]).Update("age", 50+batch).Error
		}))
	}},
	{"find in batches that stop", func(p *play) {
		var x []person
		p.ran(p.db.FindInBatches(&x, 1, func(*gorm.DB, int) error { return errRefused }))
	}},
	{"locking clause of GORM", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			var x []person
			p.ran(tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Order("id").Find(&x), len(x))
			return nil
		}))
	}},
	{"locking clause without a transaction", func(p *play) {
		var x person
		p.ran(p.db.Clauses(clause.Locking{Strength: "SHARE", Options: "NOWAIT"}).First(&x), x.ID)
	}},
	{"hooks after find", func(p *play) {
		var x []diary
		p.ran(p.db.Preload("Pages", inOrder).Order("id").Find(&x), x)
		for _, d := range x {
			p.tell(d.heard)
		}
	}},
	{"a hook that refuses what was found", func(p *play) {
		p.ran(p.db.Model(&diary{}).Where("id = 1").UpdateColumn("text", "refused after find"))
		var x diary
		p.ran(p.db.First(&x, 1), x)
	}},
}
