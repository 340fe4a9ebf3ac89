// The programs that gormlockvet is tested on.
module example.com/shop

go 1.25.0

replace github.com/gormlock/gormlock => ../..

// What programs use beside GORM, as far as they need it.
replace (
	github.com/gin-gonic/gin => ./stubs/gin
	github.com/go-chi/chi/v5 => ./stubs/chi
	github.com/labstack/echo/v4 => ./stubs/echo
	google.golang.org/grpc => ./stubs/grpc
)

require (
	github.com/gin-gonic/gin v0.0.0
	github.com/go-chi/chi/v5 v5.0.0
	github.com/gormlock/gormlock v0.0.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/labstack/echo/v4 v4.0.0
	google.golang.org/grpc v0.0.0
	gorm.io/driver/postgres v1.6.3
	gorm.io/gorm v1.31.2
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
