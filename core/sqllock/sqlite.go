package sqllock

import (
	"context"
	"database/sql"
	"sync"
)

// prepared is the pool of an SQLite database. Each connection of it compiles a statement once: in SQLite that takes as
// long as to execute it, and takes it from this process. The statements, a dozen, end with the pool: another Locker on the
// same Store may use them.
type prepared struct {
	db *sql.DB

	mu sync.Mutex // protects the field below
	m  map[string]*sql.Stmt
}

func (p *prepared) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	p.mu.Lock()
	stmt := p.m[text]
	p.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := p.db.PrepareContext(ctx, text) // it may have to wait for a connection
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.m[text]; first != nil {
		_ = stmt.Close() //nolint:sqlclosecheck // nobody has it
		return first, nil
	}
	if p.m == nil {
		p.m = make(map[string]*sql.Stmt)
	}
	p.m[text] = stmt
	return stmt, nil
}

// QueryContext implements querier.
func (p *prepared) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	stmt, err := p.statement(ctx, text) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// ExecContext implements querier.
func (p *prepared) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	stmt, err := p.statement(ctx, text) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}
