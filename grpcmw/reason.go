package grpcmw

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// IsHeld says that the status that a client got is LOCK_HELD: another request holds a lock.
func IsHeld(err error) bool { return reasonOf(err) == ReasonHeld }

// IsDuplicate says that the status that a client got is LOCK_DUPLICATE: it was done before.
func IsDuplicate(err error) bool { return reasonOf(err) == ReasonDuplicate }

// IsLost says that the status that a client got is LOCK_LOST: a lock was lost while the request ran, and
// what it has done is not known.
func IsLost(err error) bool { return reasonOf(err) == ReasonLost }

// IsUnavailable says that the status that a client got is LOCK_UNAVAILABLE: the lock service did not
// answer, or the server is about to stop.
func IsUnavailable(err error) bool { return reasonOf(err) == ReasonUnavailable }

// IsKeyInvalid says that the status that a client got is LOCK_KEY_INVALID: a value that names a lock is
// missing or invalid. The status' BadRequest says which.
func IsKeyInvalid(err error) bool { return reasonOf(err) == ReasonKeyInvalid }

func reasonOf(err error) string { return infoOf(err).GetReason() }

// infoOf returns our ErrorInfo of a status, nil if it has none.
func infoOf(err error) *errdetails.ErrorInfo {
	if err == nil {
		return nil
	}
	for _, d := range status.Convert(err).Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok && i.GetDomain() == Domain {
			return i
		}
	}
	return nil
}
