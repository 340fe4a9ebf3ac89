package operations

type Account struct {
	ID, Balance int64
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}
