// Package web has the handlers.
package web

import (
	"encoding/json"
	"net/http"
	"strconv"

	"example.com/shop/planted/rides/app"
	"example.com/shop/planted/rides/domain"
	"github.com/go-chi/chi/v5"
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Handlers struct {
	db  *gorm.DB
	svc *app.Dispatcher
}

func New(db *gorm.DB, svc *app.Dispatcher) *Handlers { return &Handlers{db, svc} }

func (h *Handlers) Routes(r chi.Router) {
	r.Post("/rides/{id}/cancel", h.cancel)
	r.Put("/rides/{id}", h.put)
	r.Post("/rides", h.transactional(h.create))
	r.Post("/events", h.transactional(func(tx *gorm.DB, w http.ResponseWriter, r *http.Request) error {
		if err := h.db.Create(&domain.Event{Kind: r.FormValue("kind")}).Error; err != nil { // misuse: outer
			return err
		}
		w.WriteHeader(http.StatusCreated) // misuse: retried
		return nil
	}))
}

type action func(tx *gorm.DB, w http.ResponseWriter, r *http.Request) error

// transactional makes a handler of what wants a transaction.
func (h *Handlers) transactional(next action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := gormlock.Transaction(h.db.WithContext(r.Context()), func(tx *gorm.DB) error {
			return next(tx, w, r)
		}, gormlock.Attempts(3))
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	}
}

func (h *Handlers) create(tx *gorm.DB, w http.ResponseWriter, r *http.Request) error {
	var ride domain.Ride
	if err := json.NewDecoder(r.Body).Decode(&ride); err != nil {
		return err
	}
	if err := tx.Create(&ride).Error; err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(ride) // misuse: retried
}

func (h *Handlers) cancel(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(chi.URLParam(r, "id"))
	if err != nil {
		http.Error(w, "no number", http.StatusBadRequest)
		return
	}
	h.db.WithContext(r.Context()).Model(&domain.Ride{}).Where("id = ?", id).Updates(map[string]any{"state": "cancelled"}) // misuse: ignored
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handlers) put(w http.ResponseWriter, r *http.Request) {
	var ride domain.Ride
	if err := json.NewDecoder(r.Body).Decode(&ride); err != nil {
		http.Error(w, "no ride", http.StatusBadRequest)
		return
	}
	if n := h.db.Save(&ride).RowsAffected; n == 0 { // misuse: ignored
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(ride)
}
