import { render, screen } from '@testing-library/react';
import { describe, expect, test } from 'vitest';

import { Took, When, formatBytes, formatDuration, formatNumber, formatRelative } from './time';

describe('formatDuration', () => {
  test.each([
    [-5, '0 ms'],
    [12.4, '12 ms'],
    [999, '999 ms'],
    [3_400, '3.4 s'],
    [42_000, '42 s'],
    [60_000, '1 min'],
    [125_000, '2 min 5 s'],
    [3_600_000, '1 h'],
    [3_700_000, '1 h 1 min'],
    [90_000_000, '1 d 1 h'],
    [86_400_000, '1 d'],
  ])('%d ms', (ms, want) => expect(formatDuration(ms)).toBe(want));
});

test.each([
  [512, '512 B'],
  [2048, '2.0 KiB'],
  [51_380_224, '49.0 MiB'],
  [3 * 1024 ** 3, '3.00 GiB'],
])('%d bytes', (n, want) => expect(formatBytes(n)).toBe(want));

test('numbers are grouped', () => expect(formatNumber(12_345)).toBe('12,345'));

describe('formatRelative', () => {
  const now = new Date('2026-03-01T12:00:00Z');
  test.each([
    ['2026-03-01T11:59:58Z', 'just now'],
    ['2026-03-01T11:59:30Z', '30 seconds ago'],
    ['2026-03-01T12:05:00Z', 'in 5 minutes'],
    ['2026-03-01T09:00:00Z', '3 hours ago'],
    ['2026-02-28T12:00:00Z', 'yesterday'],
  ])('%s', (at, want) => expect(formatRelative(new Date(at), now)).toBe(want));
  test('what is long ago is a date', () =>
    expect(formatRelative(new Date('2025-01-02T00:00:00Z'), now)).toMatch(/2025/));
});

test('a moment that is not there is a dash', () => {
  render(<When at={null} />);
  expect(screen.getByText('—')).toBeTruthy();
});

test('the time between two moments', () => {
  const { container } = render(<Took from="2026-03-01T12:00:00Z" to="2026-03-01T12:00:01.5Z" />);
  expect(container.textContent).toBe('1.5 s');
});

test('what has not begun took no time', () => {
  const { container } = render(<Took from={null} to={null} />);
  expect(container.textContent).toBe('');
});
