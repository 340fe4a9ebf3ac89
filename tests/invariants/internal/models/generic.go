package models

import (
	"context"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Model is a model, and what the generics API does with it.
type Model struct {
	Type reflect.Type
	Generic
}

// Generic is what the generics API does with the model.
type Generic struct {
	Updates      func(db *gorm.DB, s any, opts ...clause.Expression) error
	UpdatesWhere func(db *gorm.DB, where clause.Expression, s any) error
	Update       func(db *gorm.DB, where clause.Expression, column string, value any, opts ...clause.Expression) error
	Set          func(db *gorm.DB, where clause.Expression, set []clause.Assigner, opts ...clause.Expression) error
	Delete       func(db *gorm.DB, where clause.Expression, opts ...clause.Expression) error
	Create       func(db *gorm.DB, s any, opts ...clause.Expression) error
	First        func(db *gorm.DB, where clause.Expression) (any, error)
}

// Plainly is a model without the generics API.
func Plainly[T any]() Model { return Model{Type: reflect.TypeFor[T]()} }

func of[T any]() Model {
	ctx := func(db *gorm.DB) context.Context { return db.Statement.Context }
	return Model{reflect.TypeFor[T](), Generic{
		Updates: func(db *gorm.DB, s any, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Updates(ctx(db), *s.(*T))
			return err
		},
		UpdatesWhere: func(db *gorm.DB, where clause.Expression, s any) error {
			_, err := gorm.G[T](db).Where(where).Updates(ctx(db), *s.(*T))
			return err
		},
		Update: func(db *gorm.DB, where clause.Expression, column string, value any, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Where(where).Update(ctx(db), column, value)
			return err
		},
		Set: func(db *gorm.DB, where clause.Expression, set []clause.Assigner, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Where(where).Set(set...).Update(ctx(db))
			return err
		},
		Delete: func(db *gorm.DB, where clause.Expression, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Where(where).Delete(ctx(db))
			return err
		},
		Create: func(db *gorm.DB, s any, opts ...clause.Expression) error {
			return gorm.G[T](db, opts...).Create(ctx(db), s.(*T))
		},
		First: func(db *gorm.DB, where clause.Expression) (any, error) {
			v, err := gorm.G[T](db).Where(where).First(ctx(db))
			return &v, err
		},
	}}
}

// These are the models that are written by the generics API too.
var (
	OfPlain         = of[Plain]()
	OfHooked        = of[Hooked]()
	OfPointer       = of[Pointer]()
	OfNull          = of[Null]()
	OfSmall         = of[Small]()
	OfZero          = of[Zero]()
	OfRails         = of[Rails]()
	OfRailsNull     = of[RailsNull]()
	OfRailsPair     = of[RailsPair]()
	OfHibernate     = of[Hibernate]()
	OfHibernateTime = of[HibernateTime]()
	OfTimed         = of[Timed]()
	OfTimedMilli    = of[TimedMilli]()
	OfTimedSecond   = of[TimedSecond]()
	OfXmin          = of[Xmin]()
	OfXminUUID      = of[XminUUID]()
	OfPair          = of[Pair]()
	OfUUID          = of[UUID]()
	OfChar          = of[Char]()
	OfCharZero      = of[CharZero]()
	OfNumeric       = of[Numeric]()
	OfText          = of[Text]()
	OfNarrow        = of[Narrow]()
	OfNested        = of[Nested]()
	OfPart          = of[Part]()
	OfSoftPart      = of[SoftPart]()
)
