package runner

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// stdlib registers the driver that World opens.
var _ = stdlib.GetDefaultDriver

// Check ends the snippet when one of the values is an error, carries one, or shows that nothing was found or changed. What
// can be closed is closed after the snippet.
func Check(values ...any) {
	for _, value := range values {
		if text := wrong(value); text != "" {
			panic(&problem{lineOfCaller(), text})
		}
		switch value := value.(type) {
		case interface{ Close() error }:
			here.Defer(value.Close)
		case interface{ Close(context.Context) error }:
			here.Defer(func() error { return value.Close(context.Background()) })
		}
	}
}

func wrong(value any) string {
	var err error
	switch value := value.(type) {
	case error:
		err = value
	case *gorm.DB:
		err = value.Error
		statement := value.Statement
		if err == nil && statement != nil && statement.Schema != nil && statement.SQL.Len() > 0 && value.RowsAffected == 0 {
			return "0 rows: " + statement.SQL.String()
		}
	case interface{ Err() error }:
		err = value.Err()
	default:
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice && list.Len() == 0 {
			return fmt.Sprintf("an empty %T", value)
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
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
		return here.Plain().Use(value)
	case gormlock.Option:
		plugin := gormlock.New(value)
		here.Defer(plugin.Close)
		return use(ctx, plugin)
	case sessionlock.Option:
		m, err := sessionlock.Open(ctx, here.DSN, value)
		if err != nil {
			return err
		}
		return m.Close(ctx)
	case sessionlock.AcquireOption:
		return here.Locks.Do(ctx, gormlock.Key("used"), func(context.Context) error { return nil }, value)
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
	tx = tx.Session(&gorm.Session{NewDB: true}).Clauses(gormlock.IgnoreFence()).Session(&gorm.Session{})
	Check(tx.Create(row), tx.Save(row), tx.First(read))
}
