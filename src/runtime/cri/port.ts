/** Host operations that the kubelet needs beside a container runtime, because the runtime interface lacks them. */
import type { ByteStream } from '../port.ts';

export interface CriHost {
  /** Number of a signal name such as `SIGUSR1` or `SIGRTMIN+3`; SIGTERM for an unknown name. */
  signalNumber(name: string): number;
  /** Has no effect if the process has exited. */
  kill(pid: number, signal: number): void;
  /** Creates the log directory of a pod. An existing directory is no error. */
  makeDirectory(path: string): Promise<void>;
  /** Whether a mount source exists. Runtimes would create a missing source. */
  isThere(path: string): Promise<boolean>;
  /** Number of processes in the cgroup of a process; 0 if the process has exited. */
  processes(pid: number): Promise<number>;
  /**
   * Connects to a loopback port in a network namespace, or in the host's if undefined. Throws RuntimeError 'network'.
   */
  connect(network: string | undefined, port: number): Promise<ByteStream>;
}
