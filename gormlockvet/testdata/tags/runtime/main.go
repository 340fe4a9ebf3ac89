// Command runtime prints what gormlock says when it first meets each model, as JSON by the model's name.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"reflect"

	"example.com/shop/tags/cases"
	"github.com/gormlock/gormlock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// nobody is a pool that no statement reaches: what is built here is not run.
type nobody struct{}

var errNobody = errors.New("nothing is run here")

func (nobody) PrepareContext(context.Context, string) (*sql.Stmt, error) { return nil, errNobody }
func (nobody) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errNobody
}
func (nobody) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errNobody
}
func (nobody) QueryRowContext(context.Context, string, ...any) *sql.Row { return nil }

func main() {
	logger.Default = logger.Discard
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: nobody{}}), &gorm.Config{DryRun: true, DisableAutomaticPing: true})
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err != nil {
		panic(err)
	}
	said := map[string]string{}
	for _, model := range cases.All {
		name := reflect.TypeOf(model).Elem().Name()
		said[name] = ""
		if err := db.Find(model).Error; err != nil {
			said[name] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		panic(err)
	}
}
