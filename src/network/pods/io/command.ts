import { spawn } from 'node:child_process';
import { RuntimeError } from '../../../runtime/port.ts';

const MAX_OUTPUT = 64 * 1024;

/**
 * Runs a tool with `input` on stdin and returns stdout. Throws RuntimeError 'network' with the tool's first error line,
 * or for output over `maxOutput` characters.
 */
export async function command(
  file: string,
  args: readonly string[],
  input = '',
  maxOutput = MAX_OUTPUT,
): Promise<string> {
  const { code, stdout, stderr } = await output(file, args, input, maxOutput);
  if (code !== 0) throw new RuntimeError('network', `${file} ${args.join(' ')}: ${firstLine(stderr)} (exit ${code})`);
  if (stdout.length >= maxOutput)
    throw new RuntimeError('network', `${file} ${args.join(' ')}: more than ${maxOutput} characters of output`);
  return stdout;
}

export const firstLine = (text: string): string => text.trim().split('\n')[0] ?? '';

/**
 * Like `command`, but also returns output and errors of a tool that failed, because partial output may be useful.
 * Throws RuntimeError 'network' if the tool is missing.
 */
export function output(
  file: string,
  args: readonly string[],
  input = '',
  maxOutput = MAX_OUTPUT,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    child.on('error', (error) => reject(new RuntimeError('network', `${file}: ${error.message}`, { cause: error })));
    // A child that could not be started for lack of file descriptors has no streams.
    if (child.pid === undefined) return;
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < maxOutput) stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < MAX_OUTPUT) stderr += text;
    });
    child.on('close', (code) => resolve({ code, stdout, stderr }));
    // A tool that exits early closes its stdin; its exit code reports the failure.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}
