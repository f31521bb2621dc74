package redislock

import (
	"reflect"

	"github.com/redis/go-redis/v9"
)

// SetNewerOption sets an option that the oldest go-redis that we build with does not have, and says whether this one
// has it. A pointer is set to an empty struct.
func SetNewerOption(o *redis.Options, name string, number int) bool {
	f := reflect.ValueOf(o).Elem().FieldByName(name)
	switch {
	case !f.IsValid():
		return false
	case f.Kind() == reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	default:
		f.SetInt(int64(number))
	}
	return true
}
