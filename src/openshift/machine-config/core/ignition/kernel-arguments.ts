/** Kernel arguments in boot loader files. Source: kernel-parameters.txt, `config.txt` of Raspberry Pis. */

import type { BootLoader } from './port.ts';

/** COMMAND_LINE_SIZE of x86 and arm64, minus the final NUL. The kernel silently truncates longer lines. */
const MAX_LINE = 2_047;
const APPEND = /^(\s*append)(?:\s+(.*?))?\s*$/i;

/** @param present Arguments added by an earlier config. */
export function withKernelArguments(
  loader: BootLoader,
  text: string,
  present: readonly string[],
  wanted: readonly string[],
): string {
  switch (loader) {
    case 'cmdline':
      // The file has one line: the firmware ignores further lines and treats a carriage return as part of the line.
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
      // A separate file, which is read after the administrator's.
      return wanted.length === 0
        ? ''
        : `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ${wanted.map(shellQuoted).join(' ')}"\n`;
  }
}

/**
 * Reason why the boot loader would modify the arguments; undefined if it passes them unchanged. `text` is the new file.
 */
export function kernelArgumentsError(loader: BootLoader, text: string, wanted: readonly string[]): string | undefined {
  for (const argument of wanted) {
    const shown = JSON.stringify(argument);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
    if (/[\u0000-\u001f\u007f]/.test(argument)) return `${shown} has a control character`;
    if ((argument.match(/"/g)?.length ?? 0) % 2 !== 0) return `${shown} has a quote that does not end`;
    if (loader === 'grub' && isGrubScript(argument)) return `${shown} has characters that GRUB takes for its script`;
  }
  const lines =
    loader === 'cmdline' ? [text] : text.split('\n').flatMap((line) => APPEND.exec(line)?.[2] ?? ([] as string[]));
  if (loader === 'extlinux' && lines.length === 0) return 'no entry has a line "append"; add one with all arguments';
  const longest = Math.max(0, ...lines.map((line) => line.trim().length));
  return longest > MAX_LINE
    ? `the kernel takes ${MAX_LINE} characters; the boot loader would pass ${longest}`
    : undefined;
}

/** Source: GRUB's manual, "Writing full configuration files directly: Quoting". */
function isGrubScript(argument: string): boolean {
  const [quoted, bare] = [argument.match(/"[^"]*"/g)?.join('') ?? '', argument.replaceAll(/"[^"]*"/g, '')];
  return /[{}|&$;<>#'\\`]/.test(bare) || /[$\\`]/.test(quoted);
}

/** Each of `present` is removed once, starting at the end. */
function changed(line: string, present: readonly string[], wanted: readonly string[]): string {
  const words = splitKernelArguments([line]);
  for (const argument of splitKernelArguments(present)) {
    const at = words.lastIndexOf(argument);
    if (at >= 0) words.splice(at, 1);
  }
  return [...words, ...splitKernelArguments(wanted)].join(' ');
}

/** Splits into single arguments. An argument in double quotes may contain spaces. */
export function splitKernelArguments(args: readonly string[]): string[] {
  return args.flatMap((text) => text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []);
}

/**
 * Arguments of `wanted` that the running kernel lacks. GRUB passes `"a=b c"` for `a="b c"`, which are equivalent for
 * the kernel. Source: next_arg of lib/cmdline.c.
 */
export function missingKernelArguments(running: string, wanted: readonly string[]): string[] {
  const unquoted = (argument: string): string => argument.replaceAll('"', '');
  const present = new Set(splitKernelArguments([running]).map(unquoted));
  return wanted.filter((argument) => !present.has(unquoted(argument)));
}

const shellQuoted = (argument: string): string => argument.replaceAll(/(["\\$`])/g, '\\$1');
