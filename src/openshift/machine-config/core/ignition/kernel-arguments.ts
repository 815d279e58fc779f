/**
 * Changes kernel arguments in the files of boot loaders. Source: kernel-parameters.txt, `config.txt` of Raspberry Pis.
 */

import type { BootLoader } from './port.ts';

/** COMMAND_LINE_SIZE of x86 and arm64 without the final NUL. The kernel truncates a longer line without a message. */
const MAX_LINE = 2_047;
const APPEND = /^(\s*append)(?:\s+(.*?))?\s*$/i;

/**
 * Returns the new content of the boot loader's file.
 *
 * @param present Arguments that an earlier config has added.
 */
export function withKernelArguments(
  loader: BootLoader,
  text: string,
  present: readonly string[],
  wanted: readonly string[],
): string {
  switch (loader) {
    case 'cmdline':
      // The firmware reads only the first line, and treats a carriage return as part of the line.
      return `${changed(text.trim().split(/\r?\n/)[0] ?? '', present, wanted)}\n`;
    case 'extlinux':
      return text
        .split('\n')
        .map((line) => {
          const [, start, own] = APPEND.exec(line) ?? [];
          if (start === undefined || own === '-') return line;
          const kept = `${start} ${changed(own ?? '', present, wanted)}`.trimEnd();
          return line.endsWith('\r') ? `${kept}\r` : kept;
        })
        .join('\n');
    case 'grub':
      // The file contains only the arguments of configs. GRUB reads it after the administrator's file.
      return wanted.length === 0
        ? ''
        : `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ${wanted.map(shellQuoted).join(' ')}"\n`;
  }
}

/**
 * Reason why the boot loader would change or truncate the arguments; undefined if it passes them unchanged. `text` is
 * the new content of its file.
 */
export function kernelArgumentsError(loader: BootLoader, text: string, wanted: readonly string[]): string | undefined {
  for (const argument of wanted) {
    const shown = JSON.stringify(argument);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
    if (/[\u0000-\u001f\u007f]/.test(argument)) return `${shown} has a control character`;
    if ((argument.match(/"/g)?.length ?? 0) % 2 !== 0) return `${shown} has a quote that does not end`;
    if (loader === 'grub' && isGrubScript(argument)) return `${shown} has characters that GRUB interprets`;
  }
  const lines =
    loader === 'cmdline' ? [text] : text.split('\n').flatMap((line) => APPEND.exec(line)?.[2] ?? ([] as string[]));
  if (loader === 'extlinux' && lines.length === 0) return 'no entry has a line "append"; add one with all arguments';
  const longest = Math.max(0, ...lines.map((line) => line.trim().length));
  return longest > MAX_LINE
    ? `the kernel accepts ${MAX_LINE} characters; the boot loader would pass ${longest}`
    : undefined;
}

/**
 * Whether GRUB would interpret characters of the argument. Source: GRUB's manual, "Writing full configuration files
 * directly: Quoting".
 */
function isGrubScript(argument: string): boolean {
  const [quoted, bare] = [argument.match(/"[^"]*"/g)?.join('') ?? '', argument.replaceAll(/"[^"]*"/g, '')];
  return /[{}|&$;<>#'\\`]/.test(bare) || /[$\\`]/.test(quoted);
}

/** Replaces arguments in a line. Each argument in `present` is removed once, namely its last occurrence. */
function changed(line: string, present: readonly string[], wanted: readonly string[]): string {
  const words = splitKernelArguments([line]);
  for (const argument of splitKernelArguments(present)) {
    const at = words.lastIndexOf(argument);
    if (at >= 0) words.splice(at, 1);
  }
  return [...words, ...splitKernelArguments(wanted)].join(' ');
}

/** Splits lines into arguments. An argument may contain spaces in double quotes. */
export function splitKernelArguments(args: readonly string[]): string[] {
  return args.flatMap((text) => text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []);
}

/**
 * Arguments of `wanted` that the running kernel does not have. Quotes are ignored: GRUB passes `a="b c"` as `"a=b c"`,
 * and the kernel treats both the same. Source: next_arg of lib/cmdline.c.
 */
export function missingKernelArguments(running: string, wanted: readonly string[]): string[] {
  const unquoted = (argument: string): string => argument.replaceAll('"', '');
  const present = new Set(splitKernelArguments([running]).map(unquoted));
  return wanted.filter((argument) => !present.has(unquoted(argument)));
}

const shellQuoted = (argument: string): string => argument.replaceAll(/(["\\$`])/g, '\\$1');
