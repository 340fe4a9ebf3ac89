package transactions_test

import (
	"sync"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/model"
)

// A fleet has ships, and so on, down to a port that is referred to by its code. All lead to each other.
type (
	fleet struct {
		ID      int64
		Ships   []ship
		Version int64 `gormlock:"version"`
	}
	ship struct {
		ID      int64
		FleetID int64
		Trips   []trip
	}
	trip struct {
		ID     int64
		ShipID int64
		Ship   *ship
		Calls  []call
	}
	call struct {
		ID       int64
		TripID   int64
		Trip     *trip
		PortCode string
		Port     *port `gorm:"foreignKey:PortCode;references:Code"`
	}
	port struct {
		ID    int64
		Code  string `gorm:"unique"`
		Calls []call `gorm:"foreignKey:PortCode;references:Code"`
	}
)

// TestModels_firstUsedAtOnce: what is learned of a model does not depend on who uses others at that moment.
func TestModels_firstUsedAtOnce(t *testing.T) {
	t.Parallel()
	for range 100 {
		db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{Logger: logger.Discard, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		plugin := gormlock.New()
		if err := db.Use(plugin); err != nil {
			t.Fatal(err)
		}
		var users sync.WaitGroup
		start := make(chan struct{})
		for _, into := range []any{&[]call{}, &[]trip{}, &[]ship{}, &[]fleet{}, &[]port{}} {
			users.Go(func() {
				<-start
				if err := db.Find(into).Error; err != nil {
					t.Error(err)
				}
				if err := db.Delete(into, "id = ?", 1).Error; err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		users.Wait()
		for _, one := range []any{&fleet{}, &ship{}, &trip{}, &call{}} {
			stmt := &gorm.Statement{DB: db}
			if err := stmt.Parse(one); err != nil {
				t.Fatal(err)
			}
			if m := model.OfSchema(db, stmt.Schema); !m.ByOthers {
				t.Errorf("%s refers to no port by its code", stmt.Schema.Name)
			}
		}
		pool, err := db.DB()
		if err != nil || pool.Close() != nil || plugin.Close() != nil {
			t.Fatal(err)
		}
	}
}
