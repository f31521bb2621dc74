package fence

import "strconv"

// Header carries a fence to the process that has the resource: a header of a request or a task, or a key of gRPC metadata.
//
//	f, err := core.FenceFor(ctx, "order:42")
//	if err != nil {
//		return err // send nothing without a fence
//	}
//	text := strconv.FormatUint(f, 10)
//	req.Header.Set(fence.Header, text)                                                  // net/http
//	ctx = metadata.AppendToOutgoingContext(ctx, fence.Header, text)                     // gRPC
//	task := asynq.NewTaskWithHeaders(kind, body, map[string]string{fence.Header: text}) // asynq
//
// There, [Parse] reads it: fence.Parse(r.Header.Values(fence.Header)...), or the values of
// metadata.ValueFromIncomingContext(ctx, fence.Header), or task.Headers()[fence.Header].
//
// What arrives is only a number that the sender claims. It locks nothing, and the lease may have ended; the guard finds
// that out. A made-up fence can let a late write in, or lock every real holder out. So accept it only from your own
// services, and drop the header where the public comes in. A handler that holds a lock itself uses its own fence.
const Header = "holdfast-fence"

// Parse reads a fence from text: decimal digits, without a sign, spaces or leading zeros. Anything
// else is [ErrInvalid], and so are no text and several, because a request may have a header twice.
func Parse(values ...string) (uint64, error) {
	if len(values) != 1 {
		return 0, invalidf("%d fences, want one", len(values))
	}
	text := values[0]
	fence, err := strconv.ParseUint(text, 10, 64)
	if err != nil || text[0] == '0' && text != "0" {
		return 0, invalidf("fence %.40q: not a number in decimal digits", text)
	}
	if err := Check(fence); err != nil {
		return 0, err
	}
	return fence, nil
}
