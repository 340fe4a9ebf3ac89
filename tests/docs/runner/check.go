package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// Check ends the snippet when one of the values is an error, carries one, or shows that nothing was found or changed. What
// can be closed is closed after the snippet.
func Check(values ...any) {
	for _, wrong := range []func(any) string{failed, empty} {
		for _, value := range values {
			if text := wrong(value); text != "" {
				panic(&problem{lineOfCaller(), text})
			}
		}
	}
	for _, value := range values {
		switch value := value.(type) {
		case interface{ Close() error }:
			here.Defer(value.Close)
		case interface{ Close(context.Context) error }:
			here.Defer(func() error { return value.Close(context.Background()) })
		}
	}
}

func failed(value any) string {
	var err error
	switch value := value.(type) {
	case error:
		err = value
	case *gorm.DB:
		err = value.Error
	case interface{ Err() error }:
		err = value.Err()
	}
	if err == nil || errors.Is(err, gorm.ErrRegistered) { // the plugin is installed already
		return ""
	}
	return err.Error()
}

func empty(value any) string {
	if db, ok := value.(*gorm.DB); ok {
		model := db.Statement.Schema // GORM looks for it when it executes
		if model == nil || db.RowsAffected > 0 || mayDoNothing(db) {
			return ""
		}
		return "0 rows of " + model.Table
	}
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice && list.Len() == 0 {
		return fmt.Sprintf("an empty %T", value)
	}
	return ""
}

func mayDoNothing(db *gorm.DB) bool {
	conflict, ok := db.Statement.Clauses[clause.OnConflict{}.Name()].Expression.(clause.OnConflict)
	return ok && conflict.DoNothing
}

// Use checks values that the snippet leaves unused, and puts to use what does nothing by itself: an option, a key, a page.
func Use(values ...any) {
	Check(values...)
	for _, value := range values {
		Check(use(context.Background(), value))
	}
}

func use(ctx context.Context, value any) error {
	switch value := value.(type) {
	case gormlock.TxOption:
		return gormlock.Transaction(here.DB, func(tx *gorm.DB) error { return tx.Exec("SELECT 1").Error }, value)
	case lockkey.Key:
		return use(ctx, gormlock.Locking(value, gormlock.Timeout(time.Second)))
	case *gormlock.Plugin:
		here.Defer(value.Close)
		return here.Plain().Use(value)
	case gormlock.Option:
		return use(ctx, gormlock.New(value))
	case sessionlock.Option:
		m, err := sessionlock.Open(ctx, here.DSN, value)
		if err != nil {
			return err
		}
		return m.Close(ctx)
	case sessionlock.AcquireOption:
		return here.Locks().Do(ctx, gormlock.Key("used"), func(context.Context) error { return nil }, value)
	case lease.Option:
		if err := lease.Migrate(ctx, here.SQL, value); err != nil {
			return err
		}
		m, err := lease.New(ctx, here.SQL, value)
		if err != nil {
			return err
		}
		return m.Close(ctx)
	case http.Handler:
		answer := httptest.NewRecorder()
		value.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		if answer.Code != http.StatusOK {
			return fmt.Errorf("it answers %d: %s", answer.Code, answer.Body)
		}
	}
	return nil
}

// Model makes a table of a model that the snippet declares, stores a row, changes it and reads it. Then the table is gone.
func Model[T any]() {
	row, read := new(T), new(T)
	tx := here.DB.Begin()
	defer tx.Rollback()
	Check(tx.Migrator().DropTable(row), tx.AutoMigrate(row))
	write := tx
	for i := range reflect.TypeFor[T]().NumField() {
		if strings.HasPrefix(reflect.TypeFor[T]().Field(i).Tag.Get("gormlock"), "fence") {
			write = tx.Clauses(gormlock.IgnoreFence()).Session(&gorm.Session{})
		}
	}
	Check(write.Create(row), write.Save(row), tx.First(read))
}
