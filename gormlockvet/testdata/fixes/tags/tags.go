package tags

type Account struct {
	ID      int64
	Version int64 `json:"version" gormLock:"version"` // want `tags: `
}

type Deal struct {
	ID   int64
	Xmin uint32 `gorm:"column:xmin" gormlock:"version,xmin"` // want `tags: `
}
