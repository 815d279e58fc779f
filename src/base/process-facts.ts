/** Facts of the own process that only the kernel has. Implemented by `src/io/host`. */
export interface ProcessFacts {
  /** Open file descriptors; undefined where `/proc` is not mounted. */
  openFiles(): Promise<number | undefined>;
  /** Text of `limits` and `status` of `/proc/self`; empty where it is not mounted. Source: proc(5). */
  limits(): Promise<string>;
  status(): Promise<string>;
}
