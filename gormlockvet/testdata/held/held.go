package held

import (
	"context"
	"net/http"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Account struct{ ID int64 }

var key = gormlock.Key("account", 1)

func locking(ctx context.Context, db *gorm.DB, done chan struct{}, client *http.Client) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		res, err := client.Get("http://localhost") // want `held: http.Client.Get waits for an answer over the network while the transaction holds a lock`
		if err != nil {
			return err
		}
		defer res.Body.Close()
		time.Sleep(time.Second) // want `time.Sleep sleeps`
		<-done                  // want `a receive waits for a channel`
		select {                // want `a select waits for a channel`
		case <-done:
		case <-ctx.Done():
		}
		if err := charge(); err != nil { // want `charge, which calls http.Get waits for an answer`
			return err
		}
		return pause() // want `pause, which calls time.Sleep sleeps`
	}, gormlock.Locking(key))
}

func charge() error {
	res, err := http.Get("http://localhost/charge")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func pause() error {
	time.Sleep(time.Millisecond)
	return nil
}

func lockedInside(db *gorm.DB) error {
	return db.Transaction(func(tx *gorm.DB) error {
		time.Sleep(time.Second) // nothing is held yet
		if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}); err != nil {
			return err
		}
		time.Sleep(time.Second) // want `time.Sleep sleeps while the transaction holds a lock`
		return nil
	})
}

func rowLock(db *gorm.DB) error {
	return db.Transaction(func(tx *gorm.DB) error {
		var a Account
		if err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).First(&a).Error; err != nil {
			return err
		}
		return charge() // want `charge, which calls http.Get waits`
	})
}

func gormsOwn(db *gorm.DB) error {
	return db.Transaction(func(tx *gorm.DB) error {
		var a Account
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&a).Error; err != nil {
			return err
		}
		return charge() // want `charge, which calls http.Get waits`
	})
}

func helper(db *gorm.DB) error {
	return db.Transaction(func(tx *gorm.DB) error {
		if err := lockAccount(tx); err != nil {
			return err
		}
		return charge() // want `charge, which calls http.Get waits`
	})
}

func lockAccount(tx *gorm.DB) error { return gormlock.LockRow(tx, &Account{ID: 1}) }

func byHand(db *gorm.DB) error {
	tx := db.Begin()
	defer tx.Rollback()
	if err := gormlock.LockRow(tx, &Account{ID: 1}); err != nil {
		return err
	}
	if err := charge(); err != nil { // want `charge, which calls http.Get waits`
		return err
	}
	if err := tx.Commit().Error; err != nil {
		return err
	}
	return charge()
}

func given(tx *gorm.DB) error {
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}); err != nil {
		return err
	}
	return charge() // want `charge, which calls http.Get waits`
}

func innocent(db *gorm.DB, done chan struct{}, out chan int) error {
	if err := charge(); err != nil {
		return err
	}
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		select { // does not wait
		case <-done:
		default:
		}
		go charge() // somebody else waits
		go func() { time.Sleep(time.Second) }()
		return tx.Create(&Account{}).Error
	}, gormlock.Locking(key))
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	return db.Transaction(func(tx *gorm.DB) error { // no lock
		return charge()
	})
}
