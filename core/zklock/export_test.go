package zklock

// NewOld makes what is inside a Store, on the old contract.
var NewOld = newStore
