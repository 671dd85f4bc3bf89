package dev.weir.bench;

import java.io.IOException;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** A sketch as its length and its own bytes. */
abstract class SketchSerializer<T> extends TypeSerializer<T> {
  protected abstract byte[] write(T sketch);

  protected abstract T read(byte[] bytes);

  @Override
  public boolean isImmutableType() {
    return false;
  }

  @Override
  public TypeSerializer<T> duplicate() {
    return this;
  }

  @Override
  public T copy(T sketch) {
    return read(write(sketch));
  }

  @Override
  public T copy(T sketch, T reused) {
    return copy(sketch);
  }

  @Override
  public int getLength() {
    return -1;
  }

  @Override
  public void serialize(T sketch, DataOutputView output) throws IOException {
    byte[] bytes = write(sketch);
    output.writeInt(bytes.length);
    output.write(bytes);
  }

  @Override
  public T deserialize(DataInputView input) throws IOException {
    byte[] bytes = new byte[input.readInt()];
    input.readFully(bytes);
    return read(bytes);
  }

  @Override
  public T deserialize(T reused, DataInputView input) throws IOException {
    return deserialize(input);
  }

  @Override
  public void copy(DataInputView input, DataOutputView output) throws IOException {
    int length = input.readInt();
    output.writeInt(length);
    output.write(input, length);
  }

  @Override
  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass();
  }

  @Override
  public int hashCode() {
    return getClass().hashCode();
  }
}
