package fences_test

import (
	"errors"
	"strconv"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// looseReport lets its fence be NULL: no constraint refuses it.
type looseReport struct {
	ID    int64
	Body  string
	Fence *int64 `gormlock:"fence,key=report"`
}

// fencedCreates are the ways to store new rows of a report: each stores as many as it returns.
var fencedCreates = map[string]func(tx *gorm.DB) (int64, []int64, error){
	"Create": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{Body: "a"}
		return created(&r, tx.Create(&r))
	},
	"Create, explicit fence": func(tx *gorm.DB) (int64, []int64, error) {
		other := int64(1 << 60)
		r := looseReport{Body: "a", Fence: &other}
		err := tx.Create(&r).Error
		if err != nil {
			if number(r.Fence) != other {
				return 1, []int64{-1}, err
			}
			return 1, []int64{0}, err
		}
		return 1, []int64{number(r.Fence)}, err
	},
	"Create, selected": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{Body: "a"}
		return created(&r, tx.Select("Body").Create(&r))
	},
	"Create, omitted": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{Body: "a"}
		return created(&r, tx.Omit("Fence").Create(&r))
	},
	"Create, by key": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{ID: -70, Body: "a"}
		return created(&r, tx.Create(&r))
	},
	"Create of a slice": func(tx *gorm.DB) (int64, []int64, error) {
		r := make([]looseReport, 3)
		err := tx.Create(&r).Error
		return 3, []int64{number(r[0].Fence), number(r[1].Fence), number(r[2].Fence)}, err
	},
	"Create of an array": func(tx *gorm.DB) (int64, []int64, error) {
		var r [2]looseReport
		err := tx.Create(&r).Error
		return 2, []int64{number(r[0].Fence), number(r[1].Fence)}, err
	},
	"CreateInBatches": func(tx *gorm.DB) (int64, []int64, error) {
		r := make([]*looseReport, 5)
		for i := range r {
			r[i] = &looseReport{}
		}
		err := tx.CreateInBatches(&r, 2).Error
		return 5, []int64{number(r[0].Fence), number(r[4].Fence)}, err
	},
	"Create of a map": func(tx *gorm.DB) (int64, []int64, error) {
		return 1, nil, tx.Model(&looseReport{}).Create(map[string]any{"body": "a"}).Error
	},
	"Create of maps": func(tx *gorm.DB) (int64, []int64, error) {
		return 2, nil, tx.Model(&looseReport{}).Create(&[]map[string]any{{"body": "a"}, {"body": "b"}}).Error
	},
	"Save": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{Body: "a"}
		return created(&r, tx.Save(&r))
	},
	"Save, by key": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{ID: -71, Body: "a"}
		return created(&r, tx.Save(&r))
	},
	"Save of a slice": func(tx *gorm.DB) (int64, []int64, error) {
		r := []looseReport{{}, {ID: -72}}
		err := tx.Save(&r).Error
		return 2, []int64{number(r[0].Fence), number(r[1].Fence)}, err
	},
	"DO NOTHING": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{Body: "a"}
		return created(&r, tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&r))
	},
	"Upsert": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{ID: -73, Body: "a"}
		return created(&r, tx.Clauses(stand.UpdateAll).Create(&r))
	},
	"FirstOrCreate": func(tx *gorm.DB) (int64, []int64, error) {
		var r looseReport
		return created(&r, tx.Where(looseReport{ID: -74}).Attrs(looseReport{Body: "a"}).FirstOrCreate(&r))
	},
	"G.Create": func(tx *gorm.DB) (int64, []int64, error) {
		r := looseReport{Body: "a"}
		err := gorm.G[looseReport](tx).Create(tx.Statement.Context, &r)
		return 1, []int64{number(r.Fence)}, err
	},
	"G.Set().Create": func(tx *gorm.DB) (int64, []int64, error) {
		err := gorm.G[looseReport](tx).Set(clause.Assignment{Column: clause.Column{Name: "body"}, Value: "a"}).Create(tx.Statement.Context)
		return 1, nil, err
	},
}

// created is one new row, its fence, and the error of the statement.
func created(r *looseReport, tx *gorm.DB) (int64, []int64, error) {
	return 1, []int64{number(r.Fence)}, tx.Error
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// TestL1_Creates: a new row holds the token of the statement, and that of a superseded holder is refused, even if the
// column lets a NULL pass.
func TestL1_Creates(t *testing.T) {
	t.Parallel()
	eachDialect(t, []any{&looseReport{}}, func(t *testing.T, _ string, db *gorm.DB) {
		for name, create := range fencedCreates {
			for txName, transaction := range stand.Begin {
				for _, state := range []string{"fitting", "superseded", "never issued", "no token", "wrong key"} {
					t.Run(name+"/"+txName+"/"+state, func(t *testing.T) { fencedCreate(t, db, create, transaction, state) })
				}
			}
		}
	})
}

func fencedCreate(t *testing.T, db *gorm.DB, create func(*gorm.DB) (int64, []int64, error),
	transaction func(*gorm.DB, func(*gorm.DB) error) error, state string,
) {
	postgres := db.Name() == "postgres"
	stand.Must(t, db.Exec("DELETE FROM loose_reports").Error)
	token := someToken(t, db)
	latest := token
	tx := stand.With(db, token)
	switch state {
	case "superseded":
		if postgres {
			latest = stand.Issue(t, db, "report", 1)
		}
	case "never issued":
		token.ID++
		tx, latest = stand.With(db, token), fence.Token{}
	case "no token":
		tx = stand.With(db)
	case "wrong key":
		token.Topic = "invoice"
		tx = stand.With(db, token)
	}
	var count int64
	var held []int64
	err := transaction(tx, func(tx *gorm.DB) (err error) {
		count, held, err = create(tx)
		return err
	})
	written := int64(0)
	switch {
	case state == "no token" || state == "wrong key":
		mustMissToken(t, err, "loose_reports", `"report"`)
	case postgres && state != "fitting":
		e := mustBeFenced(t, err)
		stand.Equal(t, "token", e.Token, token)
		stand.Equal(t, "latest", e.Latest, latest)
		stand.Equal(t, "table", e.Table, "loose_reports")
	default: // without a table of tokens nobody knows of a later one
		stand.Must(t, err)
		written = token.Number
	}
	for _, n := range held {
		stand.Equal(t, "in memory", n, written)
	}
	var rows []looseReport
	stand.Must(t, db.Find(&rows).Error)
	if written == 0 {
		count = 0
	}
	stand.Equal(t, "rows", int64(len(rows)), count)
	for _, r := range rows {
		stand.Equal(t, "fence", number(r.Fence), token.Number)
	}
}

// Rows that an upsert finds are changed unless they were written with a later token, which is an error, and then none is.
func TestFencedUpserts(t *testing.T) {
	t.Parallel()
	models := []any{&report{}, &reportNote{}, &coded{}}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fencedUpserts(t, stand.Fenced(t, models))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fencedUpserts(t, stand.OnSQLite(t, models))
	})
}

// coded is found by its code.
type coded struct {
	ID    int64
	Code  string `gorm:"unique"`
	Price int
	Fence int64 `gormlock:"fence,key=report"`
}

func fencedUpserts(t *testing.T, db *gorm.DB) {
	token := someToken(t, db)
	tx := stand.With(db, token)
	stand.Must(t, tx.Create(&[]coded{{Code: "a"}, {Code: "b"}}).Error)
	stand.Must(t, db.Exec("UPDATE codeds SET fence = ? WHERE code = 'b'", token.Number+5).Error)
	byCode := clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: clause.AssignmentColumns([]string{"price"})}
	one := []coded{{Code: "a", Price: 1}, {Code: "c", Price: 1}}
	stand.Must(t, tx.Clauses(byCode).Create(&one).Error)
	stand.Equal(t, "in memory", one[0].Fence, token.Number)
	two := []coded{{Code: "a", Price: 2}, {Code: "b", Price: 2}, {Code: "d"}}
	refused := mustBeFenced(t, tx.Clauses(byCode).Create(&two).Error)
	stand.Equal(t, "latest", refused.Latest.Number, token.Number+5)
	stand.Equal[any](t, "row", refused.PrimaryKey["id"], int64(2))
	stand.Equal(t, "in memory", two[1], coded{Code: "b", Price: 2})
	var n int64
	stand.Must(t, db.Model(&coded{}).Where("price = 2 OR code = 'd'").Count(&n).Error)
	stand.Equal(t, "changed", n, 0)
	mustFenced(t, tx.Clauses(byCode).Create(&coded{Code: "b", Price: 2}).Error)
	mustFenced(t, tx.Clauses(byCode).Model(&coded{}).Create(map[string]any{"code": "b", "price": 2}).Error)
	// V5: swallowed, it is the error of the commit.
	mustFenced(t, tx.Transaction(func(tx *gorm.DB) error {
		mustFenced(t, tx.Clauses(byCode).Create(&two).Error)
		return nil
	}))
	// The caller's own condition leaves rows out, which is no refusal.
	where := byCode
	where.Where = clause.Where{Exprs: []clause.Expression{clause.Lt{Column: clause.Column{Table: "codeds", Name: "price"}, Value: 1}}}
	stand.Must(t, tx.Clauses(where).Create(&coded{Code: "a", Price: 3}).Error)
	where.Where.Exprs = append(where.Where.Exprs, clause.Or(clause.Expr{SQL: "1=1"}))
	mustFenced(t, tx.Clauses(where).Create(&coded{Code: "b", Price: 3}).Error)
	stand.Must(t, tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&coded{Code: "b", Price: 3}).Error)
	// IgnoreFence leaves the fence of a row that is there.
	stand.Must(t, unguarded(tx).Clauses(byCode).Create(&coded{Code: "b", Price: 7}).Error)
	var b coded
	stand.Must(t, db.First(&b, "code = 'b'").Error)
	stand.Equal(t, "ignored", b, coded{ID: 2, Code: "b", Price: 7, Fence: token.Number + 5})
	named := byCode
	named.DoUpdates = clause.AssignmentColumns([]string{"price", "fence"})
	stand.Must(t, tx.Clauses(named).Create(&coded{Code: "a", Price: 8, Fence: 3}).Error)
	if err := tx.Clauses(named).Clauses(clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"fence": 3})}).Create(&coded{Code: "a"}).Error; err == nil {
		t.Error("an upsert has assigned the fence")
	}
	stand.Must(t, unguarded(tx).Clauses(named).Create(&coded{Code: "c", Price: 8, Fence: 3}).Error)
	var c coded
	stand.Must(t, db.First(&c, "code = 'c'").Error)
	stand.Equal(t, "assigned", c.Fence, 3)
	b.Fence = 3
	stand.Must(t, unguarded(tx).Save([]*coded{&b}).Error)
	stand.Must(t, db.First(&b, "code = 'b'").Error)
	stand.Equal(t, "ignored", b.Fence, token.Number+5)
}

// A statement about many rows changes all that it finds or none: a row with a later fence is not passed over in silence.
func TestFencedBulk(t *testing.T) {
	t.Parallel()
	models := []any{&report{}, &reportNote{}}
	withAndWithoutTransactions(t, models, fencedBulk)
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fencedBulk(t, stand.OnSQLite(t, models))
	})
}

func fencedBulk(t *testing.T, db *gorm.DB) {
	token := someToken(t, db)
	tx := stand.With(db, token)
	rows := make([]report, 4)
	stand.Must(t, tx.Create(&rows).Error)
	stand.Must(t, db.Exec("UPDATE reports SET fence = ? WHERE id = 3", token.Number+5).Error)
	ctx := tx.Statement.Context
	for name, write := range map[string]func(tx *gorm.DB) error{
		"update": func(tx *gorm.DB) error { return tx.Model(&report{}).Where("id > 0").Update("body", "x").Error },
		"global": func(tx *gorm.DB) error {
			return tx.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&report{}).Update("body", "x").Error
		},
		"slice": func(tx *gorm.DB) error { return tx.Model(&rows).Update("body", "x").Error },
		"save":  func(tx *gorm.DB) error { return tx.Save(&rows).Error },
		"set": func(tx *gorm.DB) error {
			_, err := gorm.G[report](tx).Where("id > 1").Set(clause.Assignment{Column: clause.Column{Name: "body"}, Value: "x"}).Update(ctx)
			return err
		},
		"soft delete":  func(tx *gorm.DB) error { return tx.Where("id > 0").Delete(&report{}).Error },
		"soft, slice":  func(tx *gorm.DB) error { return tx.Delete(&rows).Error },
		"hard delete":  func(tx *gorm.DB) error { return tx.Unscoped().Where("id > 0 OR 1=1").Delete(&report{}).Error },
		"hard, slice":  func(tx *gorm.DB) error { return tx.Unscoped().Delete(&rows).Error },
		"hard, by key": func(tx *gorm.DB) error { return tx.Unscoped().Delete(&report{}, []int64{1, 2, 3}).Error },
	} {
		e := mustBeFenced(t, write(tx))
		stand.Equal(t, name, e.Latest.Number, token.Number+5)
		// V5: a refusal that is swallowed is the error of the commit.
		mustFenced(t, tx.Transaction(func(tx *gorm.DB) error { _ = write(tx); return nil }))
		var n int64
		stand.Must(t, db.Unscoped().Model(&report{}).Where("body = '' AND deleted_at IS NULL").Count(&n).Error)
		stand.Equal(t, name+": rows left alone", n, 4)
		for i := range rows {
			stand.Equal(t, name+": in memory", rows[i].Body, "")
		}
	}
	res := tx.Model(&report{}).Where("id <> 3").Update("body", "x")
	stand.Must(t, res.Error)
	stand.Equal(t, "rows", res.RowsAffected, 3)
	res = tx.Model(&report{}).Where("id > 100").Update("body", "x")
	stand.Must(t, res.Error)
	stand.Equal(t, "no row", res.RowsAffected, 0)
	stand.Must(t, tx.Unscoped().Where("id <> 3").Delete(&report{}).Error)
	// G13: no condition of ours makes a statement about all rows one that is asked for.
	if err := tx.Model(&report{}).Update("body", "x").Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error(err)
	}
	if err := tx.Unscoped().Delete(&report{}).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Error(err)
	}
}

// A dry run needs a token as the statement itself does, and changes nothing.
func TestFenceInADryRun(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	token := stand.Issue(t, db, "report", 1)
	r := report{ID: 1}
	dry := stand.With(db, token).Session(&gorm.Session{DryRun: true})
	stand.Equal(t, "update", dry.Model(&r).Update("body", "x").Statement.SQL.String(),
		`UPDATE "reports" SET "body"=$1,"fence"=$2 WHERE "reports"."deleted_at" IS NULL AND "id" = $3 AND COALESCE("reports"."fence",0)<=$4`+
			` AND NOT EXISTS (SELECT 1 FROM gormlock_fence WHERE space=$5::smallint AND id=$6::bigint AND token>$7::bigint)`)
	stand.Must(t, dry.Create(&report{}).Error)
	stand.Equal(t, "in memory", r.Fence, 0)
	mustMissToken(t, db.Session(&gorm.Session{DryRun: true}).Model(&r).Update("body", "x").Error)
	sql := stand.With(db, token).ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Model(&report{ID: 1}).Update("body", "x") })
	stand.Equal(t, "sql", sql, `UPDATE "reports" SET "body"='x',"fence"=1099511627777 WHERE "reports"."deleted_at" IS NULL AND "id" = 1 AND COALESCE("reports"."fence",0)<=1099511627777`+
		` AND NOT EXISTS (SELECT 1 FROM gormlock_fence WHERE space=1::smallint AND id=`+idOf(token)+`::bigint AND token>1099511627777::bigint)`)
}

func idOf(token fence.Token) string { return strconv.FormatInt(token.ID, 10) }
