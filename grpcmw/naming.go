package grpcmw

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast/core/key"
)

// keyer makes the names of a request's locks.
type keyer struct {
	template    string // for observers
	fromMessage bool   // a name needs the request, not only its context
	expand      func(ctx context.Context, req any) (names []string, err error)
}

// template is one template of a key with its sources.
type template struct {
	key     *key.Key
	sources []source
}

// templates is a key: one template, or several.
type templates struct {
	all   []template
	input protoreflect.MessageDescriptor

	fromMessage bool
}

func templateKeyer(m protoreflect.MethodDescriptor, keys string) (keyer, error) {
	parsed, err := key.ParseAll(keys)
	if err != nil {
		return keyer{}, err
	}
	k := templates{input: m.Input()}
	for _, tmpl := range parsed {
		t := template{key: tmpl}
		for _, text := range tmpl.Sources() {
			s, err := newSource(m, text.Name)
			if err == nil && s.text {
				err = text.CheckForm()
			}
			if err != nil {
				return keyer{}, fmt.Errorf("key %q: %w", tmpl, err)
			}
			t.sources = append(t.sources, s)
			k.fromMessage = k.fromMessage || s.field
		}
		k.all = append(k.all, t)
	}
	return keyer{keys, k.fromMessage, k.expand}, nil
}

func (k *templates) expand(ctx context.Context, req any) (names []string, err error) {
	var msg protoreflect.Message
	if k.fromMessage {
		if msg = reflectAs(req, k.input); msg == nil {
			return nil, errRequestType
		}
	}
	for _, t := range k.all {
		name, err := t.expand(ctx, msg)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// blame says which source is at fault.
func (t template) blame(i int, err error) error {
	return &key.SourceError{Template: t.key.String(), Source: t.key.Sources()[i].Name, Err: err}
}

// expand makes the name.
func (t template) expand(ctx context.Context, msg protoreflect.Message) (string, error) {
	var few [4]string // keeps the usual key off the heap
	values := few[:0]
	for i, s := range t.sources {
		v, err := s.value(ctx, msg)
		if err != nil {
			return "", t.blame(i, err)
		}
		values = append(values, v)
	}
	return t.key.Name(values...)
}

// reflectAs returns req for reflection, nil if it is no message of type d: field
// descriptors of one type make every other type panic.
func reflectAs(req any, d protoreflect.MessageDescriptor) protoreflect.Message {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	if msg := m.ProtoReflect(); msg.Descriptor() == d {
		return msg
	}
	return nil
}

func funcKeyer[Req proto.Message](m protoreflect.MethodDescriptor, nameOf func(context.Context, Req) (string, error)) (keyer, error) {
	if nameOf == nil {
		return keyer{}, errors.New("key function: nil")
	}
	var zero Req
	if any(zero) != nil { // Req is no interface type
		if takes := zero.ProtoReflect().Descriptor().FullName(); takes != m.Input().FullName() {
			return keyer{}, fmt.Errorf("the key function takes %s, the method %s", takes, m.Input().FullName())
		}
	}
	expand := func(ctx context.Context, req any) ([]string, error) {
		msg, ok := req.(Req)
		if !ok {
			return nil, errRequestType
		}
		name, err := nameOf(ctx, msg)
		if err == nil { // here, since what core refuses later is not the request's fault
			err = key.CheckName(name)
		}
		return []string{name}, err
	}
	return keyer{fullName(m), true, expand}, nil
}
