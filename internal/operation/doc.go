// Package operation refuses what Set(clause.Association{…}) of gorm.G would do to other rows than the caller meant.
//
// GORM does not put all of the call into the statements that it makes. A statement about a many2many has no Where of the owners. One about a
// polymorphic association has no type. One that unlinks a belongs-to has no Conditions. An OpCreate gives the same struct to one owner after the
// other. Set(…).Create has no Where at all. Such a statement has a form that shows what it is about, but it does not show what GORM has left out. So it
// is refused if it could be another one than was meant.
package operation
