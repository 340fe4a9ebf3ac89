// Package web has chi handlers.
package web

import (
	"encoding/json"
	"errors"
	"net/http"

	"example.com/shop/innocent/parcels/model"
	"example.com/shop/innocent/parcels/sms"
	"example.com/shop/innocent/parcels/store"
	"github.com/go-chi/chi/v5"
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Handlers struct {
	db    *gorm.DB
	texts *sms.Queue
}

func New(db *gorm.DB) *Handlers { return &Handlers{db: db} }

// 13: a wrapper that answers after the transaction, with what the handler returned.
type action func(tx *gorm.DB, r *http.Request) (any, error)

func (h *Handlers) transactional(next action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var out any
		err := gormlock.Transaction(h.db.WithContext(r.Context()), func(tx *gorm.DB) (err error) {
			out, err = next(tx, r)
			return err
		}, gormlock.Attempts(3))
		switch {
		case errors.Is(err, gormlock.ErrStale):
			http.Error(w, "changed meanwhile", http.StatusConflict)
		case err != nil:
			http.Error(w, "no", http.StatusInternalServerError)
		default:
			_ = json.NewEncoder(w).Encode(out)
		}
	}
}

func (h *Handlers) Routes(r chi.Router) {
	// 14: the handler uses what it is given; what is around it has a db of its own.
	r.Put("/parcels/{id}", h.transactional(func(tx *gorm.DB, r *http.Request) (any, error) {
		var p model.Parcel
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			return nil, err
		}
		return p, tx.Save(&p).Error
	}))
	r.Get("/parcels/{id}", h.get)
	r.Post("/parcels/{id}/deliver", h.deliver)
	r.Use(h.audited)
}

func (h *Handlers) get(w http.ResponseWriter, r *http.Request) {
	p, err := gorm.G[model.Parcel](h.db).Where("id = ?", chi.URLParam(r, "id")).First(r.Context())
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(p)
}

// 15: messages are collected anew in each run, and sent after the commit.
func (h *Handlers) deliver(w http.ResponseWriter, r *http.Request) {
	var texts []string
	err := store.Within(r.Context(), h.db, func(u *store.Unit) error {
		texts = texts[:0]
		p, err := u.Parcels.Get(r.Context(), 1)
		if err != nil {
			return err
		}
		p.State = "delivered"
		texts = append(texts, p.State)
		return u.Parcels.Put(r.Context(), p)
	})
	if err != nil {
		http.Error(w, "no", http.StatusConflict)
		return
	}
	for _, text := range texts {
		h.texts.Add(text)
	}
	if err := h.texts.Flush(r.Context()); err != nil {
		http.Error(w, "not told", http.StatusBadGateway)
	}
}

// 16: a middleware that writes before and after, in no transaction.
func (h *Handlers) audited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.db.Create(&model.Scan{Place: r.URL.Path}).Error; err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
