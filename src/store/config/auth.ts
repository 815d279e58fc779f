import type { Values } from './values.ts';

/** The flag's parsed value with resolved file names; the component validates the options. */
export function authTokenOf(values: Values): string {
  const text = values.text('auth-token');
  return (text === '' ? 'simple' : text)
    .split(',')
    .map((option) => {
      const [, key, path] = /^(pub-key|priv-key)=(.+)$/.exec(option) ?? [];
      return path === undefined ? option : `${key}=${values.located(path)}`;
    })
    .join(',');
}
