/**
 * Completion scripts and man pages that `hyperedge install` puts on a host, as a JSON object of texts by their paths
 * below the root. The Debian package contains these files itself.
 */
import { writeFile } from 'node:fs/promises';
import { completionScript } from '../src/cli/completion/scripts.ts';
import { manPages } from './release/manual.ts';

export function shellFiles(version: string): Readonly<Record<string, string>> {
  // The pages have no date, so that the same sources make the same executable.
  const pages = manPages(version, '');
  return {
    'usr/local/share/bash-completion/completions/hyperedge': completionScript('bash'),
    'usr/local/share/zsh/site-functions/_hyperedge': completionScript('zsh'),
    'usr/local/share/fish/vendor_completions.d/hyperedge.fish': completionScript('fish'),
    ...Object.fromEntries(pages.map(({ file, text }) => [`usr/local/share/man/man1/${file}`, text])),
  };
}

export const writeShellFiles = (path: string, version: string): Promise<void> =>
  writeFile(path, JSON.stringify(shellFiles(version)));
