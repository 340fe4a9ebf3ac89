package silenced

func none() {
	none() //gormlockvet:ignore held nobody waits // want `silenced: `
}
