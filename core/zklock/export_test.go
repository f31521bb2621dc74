package zklock

// Old is a Store on the old contract, as it is inside.
type Old = store

// NewOld makes one.
var NewOld = newStore
