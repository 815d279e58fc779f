/** Kernel arguments in the files of boot loaders. Source: kernel-parameters.txt, `config.txt` of Raspberry Pis. */

import type { BootLoader } from './port.ts';

/** `present` are the arguments that an earlier config has added. */
export function withKernelArguments(
  loader: BootLoader,
  text: string,
  present: readonly string[],
  wanted: readonly string[],
): string {
  switch (loader) {
    case 'cmdline':
      // One line: the firmware ignores what follows it.
      return `${changed(text.trim().split('\n')[0] ?? '', present, wanted)}\n`;
    case 'extlinux':
      return text
        .split('\n')
        .map((line) => {
          const match = /^(\s*append\s+)(.*)$/i.exec(line);
          return match === null ? line : `${match[1]}${changed(match[2] ?? '', present, wanted)}`;
        })
        .join('\n');
    case 'grub':
      // A file of its own, read after the administrator's.
      return wanted.length === 0
        ? ''
        : `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ${wanted.map(shellQuoted).join(' ')}"\n`;
  }
}

/** Each of `present` is taken away once, from the end. */
function changed(line: string, present: readonly string[], wanted: readonly string[]): string {
  const words = splitKernelArguments([line]);
  for (const argument of splitKernelArguments(present)) {
    const at = words.lastIndexOf(argument);
    if (at >= 0) words.splice(at, 1);
  }
  return [...words, ...splitKernelArguments(wanted)].join(' ');
}

/** One list of single arguments; an argument in double quotes may have spaces. */
export function splitKernelArguments(args: readonly string[]): string[] {
  return args.flatMap((text) => text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []);
}

const shellQuoted = (argument: string): string => argument.replaceAll(/(["\\$`])/g, '\\$1');
