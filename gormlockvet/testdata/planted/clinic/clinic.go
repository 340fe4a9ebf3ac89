// Package clinic has gin handlers, repositories that embed a base, and transactions by hand.
package clinic

import (
	"context"
	"fmt"
	"net/http"

	"example.com/shop/planted/rides/push"
	"github.com/gin-gonic/gin"
	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
)

const tableSlots = "slots"

type Stamped struct {
	ID      uint  `gorm:"primaryKey"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Slot struct {
	Stamped
	Doctor    string
	PatientID *uint
	Fee       int64
}

func (Slot) TableName() string { return tableSlots }

type Patient struct {
	Stamped
	Name string
}

type Visit struct {
	ID        uint
	PatientID uint
}

type BaseRepo struct{ DB *gorm.DB }

func (b BaseRepo) Tx(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return b.DB.WithContext(ctx).Transaction(fn)
}

type PatientRepo struct {
	BaseRepo
	key func(id uint) lockkey.Key
}

func (p PatientRepo) Merge(ctx context.Context, into, from uint) error {
	return p.Tx(ctx, func(tx *gorm.DB) error {
		if err := tx.Delete(&Patient{}, from).Error; err != nil {
			return err
		}
		return p.DB.Model(&Visit{}).Where("patient_id = ?", from).Update("patient_id", into).Error // misuse: outer
	})
}

// locked is where the statements of this repository begin.
func (p PatientRepo) locked(id uint) *gorm.DB {
	return p.DB.Scopes(gormlock.WithXactLock(p.key(id)))
}

func (p PatientRepo) Name(ctx context.Context, id uint) (string, error) {
	one, err := gorm.G[Patient](p.locked(id)).Where("id = ?", id).Take(ctx) // misuse: dropped
	return one.Name, err
}

func (p PatientRepo) Rename(id uint, name string) error {
	p.DB.Scopes(gormlock.WithXactLock(p.key(id))) // misuse: dropped
	return p.DB.Model(&Patient{}).Where("id = ?", id).Update("name", name).Error
}

func (p PatientRepo) Either(before *Patient) error {
	same := p.DB.Clauses(gormlock.IfUnchanged(before)).Where("name = ?", "a").Or("name = ?", "b") // misuse: dropped
	return p.DB.Model(&Patient{}).Where(same).Update("name", "c").Error
}

func (p PatientRepo) Fresh(id uint, out *Patient) error {
	return p.locked(id).Session(&gorm.Session{NewDB: true}).First(out, id).Error // misuse: dropped
}

type Server struct {
	db   *gorm.DB
	push *push.Client
}

func (s *Server) Routes(e *gin.Engine) {
	e.POST("/slots/:id/book", s.book)
	e.POST("/slots/:id/move", s.inTx(), s.move)
}

func (s *Server) book(c *gin.Context) {
	ctx := c.Request.Context()
	var slot Slot
	if err := s.db.WithContext(ctx).First(&slot, c.Param("id")).Error; err != nil {
		c.AbortWithStatusJSON(http.StatusNotFound, gin.H{"error": "no slot"})
		return
	}
	tx := s.db.WithContext(ctx).Begin()
	defer tx.Rollback()
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key("slot", slot.ID)}); err != nil {
		c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": err.Error()})
		return
	}
	slot.Fee += 10
	if err := tx.Save(&slot).Error; err != nil { // misuse: old
		c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": err.Error()})
		return
	}
	if err := s.push.Notify(ctx, "doctor", slot.Doctor); err != nil { // misuse: held
		c.AbortWithStatusJSON(http.StatusBadGateway, gin.H{"error": err.Error()})
		return
	}
	if err := tx.Commit().Error; err != nil {
		c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": err.Error()})
		return
	}
	c.JSON(http.StatusOK, slot)
}

// inTx keeps a transaction in the request.
func (s *Server) inTx() gin.HandlerFunc {
	return func(c *gin.Context) {
		err := gormlock.Transaction(s.db.WithContext(c.Request.Context()), func(tx *gorm.DB) error {
			c.Set("tx", tx)
			c.Next()
			return nil
		}, gormlock.Attempts(3))
		if err != nil {
			c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": err.Error()})
		}
	}
}

func (s *Server) move(c *gin.Context) {
	tx := c.MustGet("tx").(*gorm.DB)
	var form struct{ From, To uint }
	if err := c.ShouldBindJSON(&form); err != nil {
		return
	}
	tx.Model(&Slot{}).Where("id = ?", form.From).Update("patient_id", nil) // misuse: ignored
	c.JSON(http.StatusOK, nil)
}

func (s *Server) pay(c *gin.Context) {
	err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		slot := Slot{}
		if err := tx.First(&slot, c.Param("id")).Error; err != nil {
			return err
		}
		if err := tx.Model(&slot).Update("fee", 0).Error; err != nil {
			return err
		}
		c.JSON(http.StatusOK, gin.H{"paid": slot.ID}) // misuse: retried
		return nil
	}, gormlock.Attempts(4), gormlock.OnRetry(func(int, error) {}))
	if err != nil {
		c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": err.Error()})
	}
}

func (s *Server) clear(ctx context.Context, id uint) error {
	text := fmt.Sprintf("UPDATE %s SET patient_id = NULL WHERE id = ?", Slot{}.TableName())
	if err := s.db.WithContext(ctx).Exec(text, id).Error; err != nil { // misuse: around
		return err
	}
	return s.db.Table(tableSlots).Where("id = ?", id).Updates(map[string]any{"fee": 0}).Error // misuse: around
}

func (s *Server) rename(id uint, doctor string) error {
	var slot Slot
	load := func() error { return s.db.Select("id", "version", "doctor").Take(&slot, id).Error }
	if err := load(); err != nil {
		return err
	}
	slot.Doctor = doctor
	return s.db.Save(&slot).Error // misuse: around
}

func (s *Server) bump(id uint) error {
	return s.db.Model(&Slot{}).Where("id = ?", id).UpdateColumn("version", gorm.Expr("version + ?", 1)).Error // misuse: around
}
