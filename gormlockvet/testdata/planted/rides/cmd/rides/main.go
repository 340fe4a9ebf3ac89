// Command rides serves.
package main

import (
	"log/slog"
	"net/http"
	"os"

	"example.com/shop/planted/rides/app"
	"example.com/shop/planted/rides/domain"
	"example.com/shop/planted/rides/push"
	"example.com/shop/planted/rides/store"
	"example.com/shop/planted/rides/web"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func provideDB(dsn string) (*gorm.DB, func(), error) {
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{PrepareStmt: true})
	if err != nil {
		return nil, nil, err
	}
	pool := must(db.DB())
	pool.SetMaxOpenConns(20)
	return db, func() { _ = pool.Close() }, nil
}

func initialize(dsn string) (*web.Handlers, func(), error) {
	db, cleanup, err := provideDB(dsn) // misuse: uninstalled
	if err != nil {
		return nil, nil, err
	}
	svc := app.NewDispatcher(app.Params{
		DB: db, Unit: store.NewUnit(db), Rides: store.NewRides(db, &store.Outbox{}),
		Drivers: store.New[domain.Driver](db, "driver"), Log: slog.Default(),
	})
	_ = push.Client{HTTP: http.DefaultClient}
	return web.New(db, svc), cleanup, nil
}

func main() {
	h, cleanup, err := initialize(os.Getenv("DSN"))
	if err != nil {
		slog.Error("initialize", "err", err)
		return
	}
	defer cleanup()
	h.Routes(nil)
}
