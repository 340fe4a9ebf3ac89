package retried

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/gormlock/gormlock"
	"gorm.io/gorm"
)

type Order struct {
	ID    int64
	Total int64
	Lines []string
}

type service struct {
	db    *gorm.DB
	cache map[int64]Order
	sold  int64
	seen  []int64
}

var total int64

func collects(db *gorm.DB, events chan string, w http.ResponseWriter) error {
	var ids []int64
	var sum int64
	var order Order
	byID := map[int64]Order{}
	count := 0
	var text strings.Builder
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		ids = append(ids, 1)                                                            // want `retried: ids grows with each attempt`
		sum += order.ID                                                                 // want `sum grows with each attempt`
		count++                                                                         // want `count grows with each attempt`
		total++                                                                         // want `total grows with each attempt`
		order.Total -= 10                                                               // want `order.Total grows with each attempt`
		byID[1] = order                                                                 // want `byID keeps what a failed attempt put into it`
		events <- "sold"                                                                // want `events gets a value from each attempt`
		text.WriteString("sold")                                                        // want `text grows with each attempt`
		fmt.Fprintln(w, "sold")                                                         // want `fmt.Fprintln is done again with each attempt`
		json.NewEncoder(w).Encode(sum)                                                  // want `NewEncoder is done again`
		w.WriteHeader(200)                                                              // want `http.ResponseWriter.WriteHeader is done again`
		if _, err := http.Post("http://localhost/pay", "text/plain", nil); err != nil { // want `http.Post is done again with each attempt`
			return err
		}
		if err := os.WriteFile("receipt", nil, 0o600); err != nil { // want `os.WriteFile is done again`
			return err
		}
		if err := notify(); err != nil { // want `notify, which calls http.Client.Do is done again`
			return err
		}
		func() { ids = append(ids, 2) }() // want `ids grows with each attempt`
		close(events)                     // want `events is closed by each attempt`
		return tx.Create(&order).Error
	}, gormlock.Attempts(5))
}

func notify() error {
	res, err := http.DefaultClient.Do(&http.Request{Method: http.MethodPost})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (s *service) fields(order *Order) error {
	return gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		s.sold += order.Total                  // want `s.sold grows with each attempt`
		s.cache[order.ID] = *order             // want `s.cache keeps what a failed attempt put into it`
		order.Lines = append(order.Lines, "x") // want `order.Lines grows with each attempt`
		return tx.Save(order).Error
	}, gormlock.Attempts(attempts()))
}

func attempts() int { return 3 }

func (s *service) byValue() error {
	return gormlock.Transaction(s.db, s.sell, gormlock.Attempts(3))
}

func (s *service) sell(tx *gorm.DB) error {
	s.seen = append(s.seen, 1) // want `s.seen grows with each attempt`
	return tx.Create(&Order{}).Error
}

func innocent(db *gorm.DB, order *Order) error {
	var ids []int64
	var last int64
	var sum int64
	var attempt, tries int
	var text bytes.Buffer
	cache := map[int64]bool{}
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		ids, sum = nil, 0 // starts anew
		text.Reset()
		clear(cache)
		// Read again with each attempt.
		if err := tx.First(order, order.ID).Error; err != nil {
			return err
		}
		order.Total -= 10
		ids = append(ids, order.ID)
		sum += order.Total
		text.WriteString("sold")
		cache[order.ID] = true
		last = order.ID // the last attempt's
		attempt++       // counts attempts
		tries += 1
		mine := []int64{1}
		mine = append(mine, 2)
		own := map[int]int{}
		own[1]++
		_, err := os.ReadFile("config")
		return err
	}, gormlock.Attempts(5))
	_, _, _ = ids, last, sum
	return err
}

func onRetry(db *gorm.DB) error {
	var ids []int64
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		ids = append(ids, 1)
		return nil
	}, gormlock.Attempts(5), gormlock.OnRetry(func(int, error) { ids = nil }))
}

// Without Attempts it runs once.
func once(db *gorm.DB) error {
	var ids []int64
	_ = db.Transaction(func(tx *gorm.DB) error {
		ids = append(ids, 1)
		return nil
	})
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		ids = append(ids, 1)
		return nil
	}, gormlock.Attempts(1))
}
