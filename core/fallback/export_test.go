package fallback

// Names says how many names the table has.
func (d *Driver) Names() int {
	d.table.mu.Lock()
	defer d.table.mu.Unlock()
	return len(d.table.names)
}
