/** How often the server died lately. */
export const MOST_RESTARTS = 5;
export const WITHIN_MILLISECONDS = 180_000;

export class Deaths {
  private times: number[] = [];

  /** Note one at `now`, in milliseconds. How many there were within three minutes, this one among them. */
  add(now: number): number {
    this.times = [...this.times.filter((time) => now - time <= WITHIN_MILLISECONDS), now];
    return this.times.length;
  }

  forget(): void {
    this.times = [];
  }
}
