package key_test

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

func ExampleKey_Name() {
	order := key.MustParse("{tenant|text}:{id|int}")
	for _, values := range [][]string{{"acme", "42"}, {"acme", "+042"}, {"1:2", "3"}, {"1", "2:3"}} {
		fmt.Println(order.Name(values...))
	}
	// Output:
	// acme:42 <nil>
	// acme:42 <nil>
	// 1%3A2:3 <nil>
	//  holdfast: key "{tenant|text}:{id|int}": {id}: holdfast: invalid value: not an integer
}

func ExampleKey_Expand() {
	request := map[string]string{"id": "42", "query:part": "a b"}
	order := key.MustParse("order:{id}:{query:part}")
	name, err := order.Expand(func(source string) (string, error) {
		value, ok := request[source]
		if !ok {
			return "", errors.New("not in the request")
		}
		return value, nil
	})
	fmt.Println(name, err)
	// Output:
	// order:42:a%20b <nil>
}

func ExampleJSONValue() {
	for _, doc := range []string{`{"order":{"id":42}}`, `{"order":{"id":"42"}}`} {
		value, err := key.JSONValue([]byte(doc), "order.id")
		if err != nil {
			panic(err)
		}
		fmt.Println(value)
	}
	_, err := key.JSONValue([]byte(`{"order":{"id":42,"ID":43}}`), "order.id")
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output:
	// 42
	// 42
	// true
}
