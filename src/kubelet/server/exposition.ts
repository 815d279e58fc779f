/** Writer of the Prometheus text format. */
export class Exposition {
  private text = '';
  family(name: string, type: 'counter' | 'gauge', help: string): void {
    this.text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
  }
  sample(name: string, labels: Readonly<Record<string, string>>, value: number, timestampMs?: number): void {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}=${JSON.stringify(text)}`);
    this.text += `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}${timestampMs === undefined ? '' : ` ${timestampMs}`}\n`;
  }
  toString(): string {
    return this.text;
  }
}
