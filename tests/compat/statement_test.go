package compat_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var statements = []operation{
	{"dry run", func(p *play) {
		dry := p.db.Session(&gorm.Session{DryRun: true})
		p.ran(dry.Create(&person{Name: "x", Pets: []pet{{Name: "y"}}}))
		p.ran(dry.Save(&diary{ID: 1, Text: "x"}))
		p.ran(dry.Model(&person{ID: 1}).Updates(person{Name: "x"}))
		p.ran(dry.Delete(&person{ID: 1}))
		p.ran(dry.Unscoped().Delete(&person{ID: 1}))
		p.ran(dry.Preload("Pets").Where("id > ?", 1).Find(&[]person{}))
		p.ran(dry.Exec("DELETE FROM people"))
		p.ran(dry.Raw("SELECT ?", 1).Scan(new(int)))
	}},
	{"ToSQL", func(p *play) {
		p.tell(
			p.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Where("id = ?", 1).Order("name").Find(&[]person{}) }),
			p.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&language{"x", "it's"}) }),
			p.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Model(&price{}).Where("shop = ?", "a").Update("amount", 1) }),
			p.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Delete(&pet{ID: 3}) }),
		)
	}},
	{"sessions", func(p *play) {
		for _, s := range []*gorm.Session{
			{}, {NewDB: true}, {SkipDefaultTransaction: true}, {QueryFields: true}, {Initialized: true},
			{AllowGlobalUpdate: true}, {CreateBatchSize: 1}, {PropagateUnscoped: true}, {Context: p.ctx},
		} {
			tx := p.db.Where("id < ?", 4).Session(s)
			var x []person
			p.ran(tx.Order("id").Find(&x), len(x))
			p.ran(tx.Model(&person{}).Where("id = ?", 1).Update("age", gorm.Expr("age + 1")))
			p.ran(tx.Create(&[]toy{{PetID: 1, Name: "a"}, {PetID: 1, Name: "b"}}))
			p.ran(tx.Model(&diary{}).Where("id = ?", 1).Update("text", gorm.Expr("text || 'x'")))
		}
	}},
	{"a prepared session used again", func(p *play) {
		tx := p.db.Session(&gorm.Session{PrepareStmt: true})
		for i := range 3 {
			p.ran(tx.Model(&person{}).Where("id = ?", i).Update("age", i))
			p.tell(tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&person{Name: "x"}).Error }))
			var n int64
			p.ran(tx.Model(&person{}).Count(&n), n)
		}
	}},
	{"a session without default transactions in a model with hooks", func(p *play) {
		x := diary{Text: "refused after create", Pages: []page{{Text: "left"}}}
		p.ran(p.db.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&x), x, x.heard)
	}},
	{"one chain used twice", func(p *play) {
		tx := p.db.Where("age > ?", 10)
		var x []person
		var n int64
		p.ran(tx.Order("id").Find(&x), len(x))
		p.ran(tx.Model(&person{}).Count(&n), n)
	}},
	{"settings", func(p *play) {
		tx := p.db.Set("gorm:table_options", "x").InstanceSet("mine", 1)
		v, ok := tx.Get("gorm:table_options")
		w, mine := tx.InstanceGet("mine")
		p.tell(v, ok, w, mine)
	}},
	{"what a statement knows", func(p *play) {
		tx := p.db.Model(&person{}).Where("id = ?", 1).Find(&[]person{})
		p.tell(tx.Statement.Table, tx.Statement.Vars, tx.Statement.SQL.String(), tx.Name())
		var clauses []string
		for _, name := range []string{"SELECT", "FROM", "WHERE", "ORDER BY", "LIMIT", "FOR", "SET"} {
			if _, ok := tx.Statement.Clauses[name]; ok {
				clauses = append(clauses, name)
			}
		}
		p.tell(clauses, len(tx.Statement.Clauses))
	}},
	{"a callback of the application", func(p *play) {
		var heard []string
		for _, err := range []error{
			p.db.Callback().Create().Before("gorm:create").Replace("app:before", func(*gorm.DB) { heard = append(heard, "before create") }),
			p.db.Callback().Create().After("gorm:create").Replace("app:after", func(*gorm.DB) { heard = append(heard, "after create") }),
			p.db.Callback().Query().Before("gorm:query").Replace("app:query", func(*gorm.DB) { heard = append(heard, "query") }),
		} {
			p.tell(err)
		}
		p.ran(p.db.Create(&person{Name: "x"}))
		p.ran(p.db.First(&person{}))
		p.tell(heard)
		p.tell(p.db.Callback().Create().Remove("app:before"), p.db.Callback().Create().Remove("app:after"), p.db.Callback().Query().Remove("app:query"))
	}},
	{"errors", func(p *play) {
		for _, err := range []error{
			p.db.Create(&person{Name: "x", Email: pointer("ada@example.org")}).Error,
			p.db.Create(&profile{PersonID: 999}).Error,
			p.db.First(&person{}, 999).Error,
			p.db.Create(map[string]any{"a": 1}).Error,
			p.db.Find("nonsense").Error,
			p.db.Model(&person{}).Where("nothing = ?", 1).Find(&[]person{}).Error,
			p.db.Delete(&person{}).Error,
			p.db.Raw("SELECT 1/0").Scan(new(int)).Error,
		} {
			var state interface{ SQLState() string }
			if errors.As(err, &state) {
				p.tell(state.SQLState())
			}
			p.tell(err, errors.Is(err, gorm.ErrDuplicatedKey), errors.Is(err, gorm.ErrForeignKeyViolated), errors.Is(err, gorm.ErrRecordNotFound),
				errors.Is(err, gorm.ErrMissingWhereClause))
		}
	}},
	{"the pool of the application", func(p *play) {
		pool, err := p.db.DB()
		if err != nil {
			p.tell(err)
			return
		}
		var n int
		p.tell(pool.QueryRowContext(p.ctx, "SELECT count(*) FROM people").Scan(&n), n, pool.PingContext(p.ctx))
	}},
	{"generics", func(p *play) { generics(p.ctx, p, p.db) }},
	{"generics in a transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			generics(p.ctx, p, tx)
			return errRefused
		}))
	}},
	{"values in and out", func(p *play) { values(p, p.db) }},
	{"values in and out of a transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			values(p, tx)
			return nil
		}))
	}},
}

func generics(ctx context.Context, p *play, db *gorm.DB) {
	people := gorm.G[person](db)
	eve := person{Name: "eve", Pets: []pet{{Name: "owl"}}}
	p.tell(people.Create(ctx, &eve), eve)
	made := []language{{"a", "A"}, {"b", "B"}, {"c", "C"}}
	p.tell(gorm.G[language](db).CreateInBatches(ctx, &made, 2), made)
	first, err := people.Where("name = ?", "ada").First(ctx)
	p.tell(first, err)
	all, err := people.Preload("Pets", func(pets gorm.PreloadBuilder) error { pets.Order("id"); return nil }).Order("id").Find(ctx)
	p.tell(all, err)
	joined, err := people.Joins(clause.LeftJoin.Association("Company"), nil).Order("people.id").Find(ctx)
	p.tell(joined, err)
	n, err := people.Where("id = ?", 1).Update(ctx, "age", 77)
	p.tell(n, err)
	n, err = people.Where("id = ?", 1).Updates(ctx, person{Name: "new", Age: 5})
	p.tell(n, err)
	n, err = people.Where("id = ?", 2).Set(clause.Assignment{Column: clause.Column{Name: "age"}, Value: 3}).Update(ctx)
	p.tell(n, err)
	n, err = people.Where("id = ?", 3).Delete(ctx)
	p.tell(n, err)
	count, err := people.Count(ctx, "*")
	p.tell(count, err)
	raw, err := gorm.G[string](db).Raw("SELECT name FROM people WHERE id = ?", 1).First(ctx)
	p.tell(raw, err)
	p.tell(gorm.G[person](db).Exec(ctx, "UPDATE people SET age = 1 WHERE id = ?", 2))
	result := gorm.WithResult()
	p.tell(gorm.G[language](db, result, clause.OnConflict{DoNothing: true}).Create(ctx, &language{"en", "again"}), result.RowsAffected)
	p.tell(people.Order("id").FindInBatches(ctx, 2, func(batch []person, n int) error {
		p.tell(n, len(batch))
		return nil
	}))
}

// initials is a type that speaks to the database itself.
type initials string

func (i initials) Value() (driver.Value, error) { return "<" + string(i) + ">", nil }

// values sends what the driver must understand, through GORM and back.
func values(p *play, db *gorm.DB) {
	var (
		text    string
		number  int64
		decimal float64
		when    time.Time
		bytes   []byte
		none    *string
	)
	p.tell(db.Raw(`SELECT ?::text, ?::bigint, ?::float8, ?::timestamptz, ?::bytea, ?::text`,
		initials("ab"), uint8(7), float32(1.5), now(), []byte{1, 2}, nil).
		Row().Scan(&text, &number, &decimal, &when, &bytes, &none), text, number, decimal, when.UTC(), bytes, none)
	rows, err := db.Raw(`SELECT 1::int2 AS a, 2.50::numeric(8,2) AS b, 'x'::varchar(7) AS c, now() IS NULL AS d, '{"a":1}'::jsonb AS e,
		'2024-02-29'::date AS f, NULL::int8 AS g, ARRAY['p','q'] AS h, '\x00ff'::bytea AS i, interval '1 day' AS j, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS k`).Rows()
	p.rows(rows, err)
}
