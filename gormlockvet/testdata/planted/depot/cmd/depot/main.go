package main

import "example.com/shop/planted/depot/app"

func main() {
	if err := app.Run("dsn"); err != nil { // misuse: uninstalled
		panic(err)
	}
}
