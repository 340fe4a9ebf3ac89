package plain

func plain() {
	plain() //gormlockvet:ignore held there is no GORM here // want `nothing is found here by held`
}
