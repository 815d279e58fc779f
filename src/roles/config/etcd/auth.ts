/** The flag `--auth-token`. */
import type { Values } from './values.ts';

/** As given, with the files found; whoever reads them says what is wrong with the options. */
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
