// Package api answers requests.
package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"example.com/shop/planted/bank/model"
	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Server struct{ DB *gorm.DB }

func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /accounts", s.create)
	mux.HandleFunc("PUT /accounts/{id}", s.update)
	mux.HandleFunc("DELETE /accounts/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.DB.WithContext(r.Context()).Delete(&model.Account{}, r.PathValue("id")) // misuse: ignored
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /accounts/{id}/pay", s.pay)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var a model.Account
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	result := s.DB.WithContext(r.Context()).Create(&a) // misuse: ignored
	if result.RowsAffected == 0 {
		w.WriteHeader(http.StatusConflict)
	}
	_ = json.NewEncoder(w).Encode(a)
}

func (s *Server) update(w http.ResponseWriter, r *http.Request) {
	var form map[string]any
	if err := json.NewDecoder(r.Body).Decode(&form); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err := gormlock.Transaction(s.DB, func(tx *gorm.DB) error {
		if err := tx.Model(&model.Account{}).Where("id = ?", r.PathValue("id")).Updates(form).Error; err != nil {
			return err
		}
		w.WriteHeader(http.StatusOK)           // misuse: retried
		fmt.Fprintln(w, "saved")               // misuse: retried
		return json.NewEncoder(w).Encode(form) // misuse: retried
	}, gormlock.Attempts(4))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *Server) pay(w http.ResponseWriter, r *http.Request) {
	tx := s.DB.Begin()
	defer tx.Rollback()
	var a model.Account
	if err := tx.Scopes(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)).First(&a, r.PathValue("id")).Error; err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if _, err := http.Get("http://localhost/rates"); err != nil { // misuse: held
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	a.Balance--
	tx.Save(&a) // misuse: ignored
	if err := tx.Commit().Error; err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}
