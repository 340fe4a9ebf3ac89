// As much of gormlock as testdata/work needs: package work is tested by its names alone.
module github.com/gormlock/gormlock

go 1.25.0

require gorm.io/gorm v1.31.2
