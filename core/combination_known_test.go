package core_test

// What the model has found and is not mended yet: while one of these is true, the model keeps out of the
// fault's way. Delete it with the fault.
const (
	// A place in line that a Wait has taken beside the acquire that was granted stays for its PlaceLife.
	knownGhostPlace = true
)
