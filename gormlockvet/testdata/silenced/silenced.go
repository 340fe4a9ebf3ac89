package silenced

import (
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Account struct {
	ID      int64
	Version int64 `gormlock:"version"`
}

func silent(db *gorm.DB) {
	db.Save(&Account{}) //gormlockvet:ignore ignored the row is made in a test, and looked at below
	//gormlockvet:ignore ignored,around the caller looks // want `silenced: nothing is found here by around: remove the comment`
	db.Save(&Account{})
	//gormlockvet:ignore ignored // want `silenced: say why`
	db.Save(&Account{})
	db.First(&Account{}) //gormlockvet:ignore ignored nothing is ignored // want `silenced: nothing is found here by ignored`
	//gormlockvet:ignore // want `say which finding the comment silences`
	//gormlockvet:ignore nothing because // want `there is no finding nothing`
	_ = gormlock.New
}
