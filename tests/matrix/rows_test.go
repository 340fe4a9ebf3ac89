package matrix_test

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
)

// document has a version, ruled one that a trigger counts, stamped the server's own, and report a fence.
type (
	document struct {
		ID      int64
		Body    string
		Note    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	ruled struct {
		ID      int64
		Body    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	stamped struct {
		ID   int64
		Body string
		Xmin uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
	report struct {
		ID    int64
		Body  string
		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=matrix"`
	}
	ticket struct {
		ID    int64
		State string
		Owner string
	}
)

var errUndo = errors.New("undo")

// rows are the features that live in rows.
func rows() []feature {
	return []feature{
		{"`gormlock:\"version\"`: a stale Save", func(ctx context.Context, p *place) error {
			return staleIsRefused(ctx, p, &document{ID: 1}, &document{ID: 1}, func(db *gorm.DB, mine *document) error {
				mine.Body = "mine"
				return db.Save(mine).Error
			})
		}},
		{"the same, of a slice", func(ctx context.Context, p *place) error {
			return staleIsRefused(ctx, p, &document{ID: 2}, &document{ID: 2}, func(db *gorm.DB, mine *document) error {
				mine.Body = "mine"
				return db.Save([]*document{mine}).Error
			})
		}},
		{"versions after a rollback", rolledBack},
		{"`version,xmin`", func(ctx context.Context, p *place) error {
			return staleIsRefused(ctx, p, &stamped{ID: 1}, &stamped{ID: 1}, func(db *gorm.DB, mine *stamped) error { return db.Model(mine).Update("body", "mine").Error })
		}},
		{"VersionTrigger", scripted},
		{"IfUnchanged", unchanged},
		{"Touch, VerifyVersion", touched},
		{"SaveMerged", merged},
		{"`gormlock:\"fence\"`, Fence", fenced},
		{"WithRowLock, LockRow, LockRows", rowsLocked},
		{"WithSkipLocked", skipped},
		{"Claim", claimed},
	}
}

// staleIsRefused asserts that of two who read one row the second to write is refused, after which the row is the first one's.
func staleIsRefused[T any](ctx context.Context, p *place, first, second *T, write func(db *gorm.DB, row *T) error) error {
	db := p.db.WithContext(ctx)
	if err := db.Transaction(func(tx *gorm.DB) error { // where reads are balanced, this one sees the row
		return errors.Join(tx.Create(first).Error, tx.First(first).Error, tx.First(second).Error)
	}); err != nil {
		return err
	}
	if err := write(db, first); err != nil {
		return err
	}
	if err := write(db, second); !errors.Is(err, gormlock.ErrStale) {
		return broken(fmt.Sprintf("a stale write: %v", err))
	}
	return write(db, first)
}

func rolledBack(ctx context.Context, p *place) error {
	db, d := p.db.WithContext(ctx), &document{ID: 3}
	if err := db.Create(d).Error; err != nil {
		return err
	}
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(d).Update("body", "never").Error; err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		return err
	}
	if d.Version != 1 {
		return broken(fmt.Sprintf("after a rollback the version is %d", d.Version))
	}
	return db.Model(d).Update("body", "then").Error
}

func scripted(ctx context.Context, p *place) error {
	db, d := p.db.WithContext(ctx), &ruled{ID: 1}
	if err := db.Exec(gormlock.VersionTrigger("ruleds", "version")).Error; err != nil {
		return err
	}
	if err := db.Create(d).Error; err != nil {
		return err
	}
	if _, err := p.pool.ExecContext(ctx, "UPDATE ruleds SET body = 'by a script'"); err != nil {
		return err
	}
	if err := db.Model(d).Update("body", "mine").Error; !errors.Is(err, gormlock.ErrStale) {
		return broken(fmt.Sprintf("after a script: %v", err))
	}
	return nil
}

func unchanged(ctx context.Context, p *place) error {
	db := p.db.WithContext(ctx)
	read := ticket{ID: 1, State: "open"}
	if err := db.Create(&read).Error; err != nil {
		return err
	}
	if err := db.Clauses(gormlock.IfUnchanged(&read)).Model(&ticket{ID: 1}).Update("state", "held").Error; err != nil {
		return err
	}
	if err := db.Clauses(gormlock.IfUnchanged(&read)).Model(&ticket{ID: 1}).Update("state", "sold").Error; !errors.Is(err, gormlock.ErrStale) {
		return broken(fmt.Sprintf("a changed row: %v", err))
	}
	return nil
}

func touched(ctx context.Context, p *place) error {
	db, d := p.db.WithContext(ctx), &document{ID: 4}
	if err := db.Create(d).Error; err != nil {
		return err
	}
	stale := *d
	if err := gormlock.Touch(db, d); err != nil {
		return err
	}
	if d.Version != 2 {
		return broken(fmt.Sprintf("touched at %d", d.Version))
	}
	return db.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.VerifyVersion(tx, d); err != nil {
			return err
		}
		if err := gormlock.VerifyVersion(tx, &stale); !errors.Is(err, gormlock.ErrStale) {
			return broken(fmt.Sprintf("a stale version: %v", err))
		}
		return nil
	})
}

func merged(ctx context.Context, p *place) error {
	db := p.db.WithContext(ctx)
	base := document{ID: 5, Body: "a", Note: "a"}
	if err := db.Create(&base).Error; err != nil {
		return err
	}
	save := func(body, note string) (document, error) {
		mine := base
		mine.Body, mine.Note = body, note
		return mine, db.Transaction(func(tx *gorm.DB) error { return gormlock.SaveMerged(tx, &mine, &base) })
	}
	if _, err := save("theirs", "a"); err != nil {
		return err
	}
	both, err := save("a", "mine")
	if err != nil {
		return err
	}
	if both.Body != "theirs" || both.Note != "mine" {
		return broken(fmt.Sprintf("merged into %+v", both))
	}
	if _, err := save("other", "a"); !errors.Is(err, gormlock.ErrStale) {
		return broken(fmt.Sprintf("both changed one column: %v", err))
	}
	return nil
}

func fenced(ctx context.Context, p *place) error {
	db := p.db.WithContext(ctx)
	token := func(number int64) (fence.Token, error) {
		if p.pgx == nil { // there is no table of tokens
			return fence.For(gormlock.Key("matrix", 1), number)
		}
		return fence.Issue(ctx, p.pool, gormlock.Key("matrix", 1))
	}
	first, err := token(1)
	if err != nil {
		return err
	}
	if err := db.Clauses(gormlock.Fence(first)).Create(&report{ID: 1}).Error; err != nil {
		return err
	}
	second, err := token(2)
	if err != nil {
		return err
	}
	if err := db.Clauses(gormlock.Fence(second)).Model(&report{ID: 1}).Update("body", "second").Error; err != nil {
		return err
	}
	if err := db.Clauses(gormlock.Fence(first)).Model(&report{ID: 1}).Update("body", "first").Error; !errors.Is(err, gormlock.ErrFenced) {
		return broken(fmt.Sprintf("a superseded holder: %v", err))
	}
	return nil
}

// apart runs held in one transaction and beside in another one while the first is open.
func apart(db *gorm.DB, held, beside func(tx *gorm.DB) error) error {
	return db.Transaction(func(tx *gorm.DB) error {
		if err := held(tx); err != nil {
			return err
		}
		return db.Transaction(beside)
	})
}

func rowsLocked(ctx context.Context, p *place) error {
	db := p.db.WithContext(ctx)
	if err := db.Create(&ticket{ID: 10}).Error; err != nil {
		return err
	}
	lock := func(tx *gorm.DB, opts ...gormlock.RowLockOption) []error {
		return []error{
			gormlock.LockRow(tx, &ticket{ID: 10}, opts...),
			gormlock.LockRows(tx, &[]ticket{{ID: 10}}, opts...),
			tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, opts...)).First(&ticket{}, 10).Error,
		}
	}
	return apart(db, func(tx *gorm.DB) error { return errors.Join(lock(tx)...) }, func(tx *gorm.DB) error {
		for _, err := range lock(tx, gormlock.Try()) {
			if !errors.Is(err, gormlock.ErrNotAcquired) {
				return broken(fmt.Sprintf("a locked row: %v", err))
			}
		}
		return nil
	})
}

func skipped(ctx context.Context, p *place) error {
	db := p.db.WithContext(ctx)
	if err := db.Create([]ticket{{ID: 20, State: "skip"}, {ID: 21, State: "skip"}}).Error; err != nil {
		return err
	}
	one := func(want int64) func(tx *gorm.DB) error {
		return func(tx *gorm.DB) error {
			var got ticket
			if err := tx.Scopes(gormlock.WithSkipLocked()).Where("state = ?", "skip").Order("id").Take(&got).Error; err != nil {
				return err
			}
			if got.ID != want {
				return broken(fmt.Sprintf("got row %d, want %d", got.ID, want))
			}
			return nil
		}
	}
	return apart(db, one(20), one(21))
}

func claimed(ctx context.Context, p *place) error {
	db := p.db.WithContext(ctx)
	if err := db.Create([]ticket{{ID: 30, State: "ready"}, {ID: 31, State: "ready"}, {ID: 32, State: "ready"}}).Error; err != nil {
		return err
	}
	claim := func(db *gorm.DB) ([]ticket, error) {
		return gormlock.Claim[ticket](db, 2, map[string]any{"state": "taken"}, func(db *gorm.DB) *gorm.DB { return db.Where("state = ?", "ready").Order("id") })
	}
	got := map[int64]int{}
	err := apart(db, func(tx *gorm.DB) error {
		mine, err := claim(tx)
		for _, one := range mine {
			got[one.ID]++
		}
		return err
	}, func(tx *gorm.DB) error {
		theirs, err := claim(tx)
		for _, one := range theirs {
			got[one.ID]++
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(got) != 3 || got[30] != 1 || got[31] != 1 || got[32] != 1 {
		return broken(fmt.Sprintf("claimed %v", got))
	}
	return nil
}
