package compat_test

import (
	"fmt"

	"gorm.io/gorm"
)

// oldGadget and newGadget are a table before and after a migration.
type oldGadget struct {
	ID   int64
	Name string `gorm:"size:20;index"`
	Gone string
}

func (oldGadget) TableName() string { return "gadgets" }

type newGadget struct {
	ID     int64
	Name   string `gorm:"size:50;uniqueIndex;comment:what it is called"`
	Weight float64
	Owner  int64 `gorm:"check:owner_positive,owner > 0"`
}

func (newGadget) TableName() string { return "gadgets" }

var migrations = []operation{
	{"auto migrate of what is there", func(p *play) { p.tell(p.db.AutoMigrate(&company{}, &remark{}, &diary{}, &page{})) }},
	{"migrator", func(p *play) { migrate(p, p.db) }},
	{"migrator in a transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			migrate(p, tx)
			return nil
		}))
	}},
}

func migrate(p *play, db *gorm.DB) {
	m := db.Migrator()
	p.tell(m.AutoMigrate(&oldGadget{}), m.HasTable("gadgets"), m.CurrentDatabase() != "")
	p.ran(db.Create(&oldGadget{Name: "a", Gone: "b"}))
	p.tell(m.AutoMigrate(&newGadget{}), m.HasColumn(&newGadget{}, "weight"), m.HasIndex(&newGadget{}, "Name"), m.HasConstraint(&newGadget{}, "owner_positive"))
	p.tell(m.DropColumn(&oldGadget{}, "gone"), m.RenameColumn(&newGadget{}, "weight", "mass"), m.AddColumn(&newGadget{}, "Weight"))
	columns, err := m.ColumnTypes(&newGadget{})
	p.tell(err)
	for _, c := range columns {
		length, hasLength := c.Length()
		precision, scale, hasPrecision := c.DecimalSize()
		nullable, _ := c.Nullable()
		primary, _ := c.PrimaryKey()
		value, hasValue := c.DefaultValue()
		comment, _ := c.Comment()
		p.tell(c.Name(), c.DatabaseTypeName(), length, hasLength, precision, scale, hasPrecision, nullable, primary, value, hasValue, comment,
			fmt.Sprint(c.ScanType()))
	}
	indexes, err := m.GetIndexes(&newGadget{})
	p.tell(err, len(indexes))
	p.tell(m.CreateView("heavy", gorm.ViewOption{Query: db.Model(&newGadget{}).Select("name").Where("mass > ?", 1)}), m.DropView("heavy"))
	p.tell(m.RenameTable("gadgets", "things"), m.HasTable("gadgets"), m.DropTable("things"), m.HasTable("things"))
}
