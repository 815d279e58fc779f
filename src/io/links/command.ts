import { spawn } from 'node:child_process';
import { RuntimeError } from '../../core/podplan/port.ts';

const MAX_OUTPUT = 64 * 1024;

/** Runs a tool with `input` on stdin. Throws RuntimeError 'network' with the tool's first complaint. Returns stdout. */
export function command(file: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (stdout.length < MAX_OUTPUT) stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr.length < MAX_OUTPUT) stderr += text;
    });
    child.on('error', (error) => reject(new RuntimeError('network', `${file}: ${error.message}`, { cause: error })));
    child.on('close', (code) => {
      if (code === 0) resolve(stdout);
      else
        reject(
          new RuntimeError(
            'network',
            `${file} ${args.join(' ')}: ${stderr.trim().split('\n')[0] ?? ''} (exit ${code})`,
          ),
        );
    });
    // A tool that ends early closes its stdin; its exit code tells what matters.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}
