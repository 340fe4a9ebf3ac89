package roots_test

import (
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"

	"gorm.io/gorm"
)

type (
	unreadRoot struct {
		ID          int64
		Title       string
		LockVersion int64 `gormlock:"version,rails"`
	}
	unreadPart struct {
		ID           int64
		UnreadRootID int64
		UnreadRoot   *unreadRoot `gormlock:"root"`
	}
)

// A root that counts as not read is compared, although it holds nothing but its key: so it is refused.
func TestRoot_thatWasLeftUnread(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())), pgtest.Schema())
	stand.Must(t, db.AutoMigrate(&unreadRoot{}, &unreadPart{}))
	var root unreadRoot
	var part unreadPart
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Create(&root))
		part.UnreadRootID = root.ID
		return tx.Create(&part).Error
	}))
	part.UnreadRoot = &root
	stand.MustBeUnread(t, db.Delete(&part).Error)
	stand.MustBeUnread(t, db.Create(&unreadPart{UnreadRootID: root.ID, UnreadRoot: &root}).Error)
}
