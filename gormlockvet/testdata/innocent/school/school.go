// Package school has gin handlers whose transactions are right.
package school

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Base struct {
	ID        uint `gorm:"primaryKey"`
	UpdatedAt time.Time
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Course struct {
	Base
	Title string
	Seats int64
}

type Mark struct {
	ID     uint
	Course uint
	Value  int
}

type Repo struct{ DB *gorm.DB }

// 18: who has a transaction in ctx goes on in it.
type txKey struct{}

func (r Repo) conn(ctx context.Context) *gorm.DB {
	if tx, ok := ctx.Value(txKey{}).(*gorm.DB); ok {
		return tx
	}
	return r.DB.WithContext(ctx)
}

func (r Repo) Atomic(ctx context.Context, fn func(ctx context.Context) error) error {
	return r.conn(ctx).Transaction(func(tx *gorm.DB) error {
		return fn(context.WithValue(ctx, txKey{}, tx))
	})
}

func (r Repo) Save(ctx context.Context, c *Course) error { return r.conn(ctx).Save(c).Error }

type Server struct {
	Repo
	courses Repo
	reports *gorm.DB
	served  atomic.Int64
}

func (s *Server) enrol(c *gin.Context) {
	var course Course
	if err := c.ShouldBindJSON(&course); err != nil {
		c.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		return
	}
	// 19: two repositories in one transaction of the ctx.
	err := s.Atomic(c.Request.Context(), func(ctx context.Context) error {
		return errors.Join(s.Save(ctx, &course), s.courses.Save(ctx, &course))
	})
	if err != nil {
		c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": err.Error()})
		return
	}
	c.JSON(http.StatusOK, course)
}

// 20: a transaction by hand: lock, read, write, commit, then the answer.
func (s *Server) take(c *gin.Context) {
	ctx := c.Request.Context()
	tx := s.DB.WithContext(ctx).Begin()
	if tx.Error != nil {
		c.AbortWithStatusJSON(http.StatusServiceUnavailable, nil)
		return
	}
	defer tx.Rollback()
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key("course", c.Param("id"))}); err != nil {
		c.AbortWithStatusJSON(http.StatusConflict, nil)
		return
	}
	var course Course
	if err := tx.First(&course, c.Param("id")).Error; err != nil {
		c.AbortWithStatusJSON(http.StatusNotFound, nil)
		return
	}
	course.Seats--
	if err := tx.Save(&course).Error; err != nil {
		c.AbortWithStatusJSON(http.StatusConflict, nil)
		return
	}
	if err := tx.Commit().Error; err != nil {
		c.AbortWithStatusJSON(http.StatusConflict, nil)
		return
	}
	res, err := http.Get("http://localhost/taken")
	if err != nil {
		slog.ErrorContext(ctx, "tell", "err", err)
	} else {
		_ = res.Body.Close()
	}
	c.JSON(http.StatusOK, course)
}

// 21: an answer in a transaction that runs once.
func (s *Server) once(c *gin.Context) error {
	return gormlock.Transaction(s.DB, func(tx *gorm.DB) error {
		m := Mark{Value: 1}
		if err := tx.Create(&m).Error; err != nil {
			return err
		}
		c.JSON(http.StatusOK, m)
		return nil
	}, gormlock.Attempts(1))
}

// 22: counters for people who watch, a logger.
func (s *Server) watched(ctx context.Context, c *Course) error {
	return gormlock.Transaction(s.DB.WithContext(ctx), func(tx *gorm.DB) error {
		s.served.Add(1)
		slog.InfoContext(ctx, "saving", "id", c.ID)
		return tx.Save(c).Error
	}, gormlock.Attempts(3), gormlock.OnRetry(func(attempt int, err error) { slog.Warn("again", "attempt", attempt, "err", err) }))
}

// 23: a report on a database of its own, while the transaction is open.
func (s *Server) report(ctx context.Context) error {
	return s.DB.Transaction(func(tx *gorm.DB) error {
		var n int64
		if err := tx.Model(&Course{}).Count(&n).Error; err != nil {
			return err
		}
		return s.reports.WithContext(ctx).Create(&Mark{Value: int(n)}).Error
	})
}

// 24: a sub-query is built on the outer db, and runs where the statement does.
func (s *Server) fill(ids []uint) error {
	return s.DB.Transaction(func(tx *gorm.DB) error {
		full := s.DB.Model(&Mark{}).Select("course").Where("value > ?", 5)
		return tx.Model(&Course{}).Where("id IN (?) AND id IN ?", full, ids).Update("seats", 0).Error
	})
}

// 25: errors that are kept for later, in a list, a field, a closure.
type report struct{ err error }

func (s *Server) all(courses []*Course) (err error) {
	reports := make([]report, len(courses))
	for i, c := range courses {
		reports[i] = report{err: s.DB.Save(c).Error}
	}
	check := func(res *gorm.DB) {
		if res.Error != nil && err == nil {
			err = res.Error
		}
	}
	check(s.DB.Delete(courses[0]))
	for _, r := range reports {
		err = errors.Join(err, r.err)
	}
	return err
}

// 26: a row lock, and GORM's, on what is written in the same transaction.
func (s *Server) lower(id uint) error {
	return s.DB.Transaction(func(tx *gorm.DB) error {
		var c Course
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).Take(&c, id).Error; err != nil {
			return err
		}
		c.Title = strings.ToLower(c.Title)
		return tx.Select("title").Updates(&c).Error
	})
}

// 27: conditions in a group, of which none is a lock.
func (s *Server) find(out *[]Course) error {
	either := s.DB.Where("seats > 0").Or(s.DB.Where("title = ?", "x").Where("seats = 0"))
	return s.DB.Scopes(gormlock.WithXactLock(gormlock.Key("find"))).Where(either).Find(out).Error
}

// 28: a goroutine that lives longer than the request, on the outer db.
func (s *Server) later(ctx context.Context, c *Course) error {
	return s.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		go func() {
			if err := s.reports.Create(&Mark{}).Error; err != nil {
				slog.Error("later", "err", err)
			}
		}()
		return tx.Save(c).Error
	})
}
